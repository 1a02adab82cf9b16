// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/features"
)

// everything is what an API server serves that serves all of what is asked for.
func everything() map[string][]string {
	return map[string][]string{
		"resource.k8s.io/v1":         {"resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules", "resourceclaimtemplates"},
		"scheduling.k8s.io/v1beta1":  {"podgroups", "workloads"},
		"scheduling.k8s.io/v1alpha3": {"podgroups", "compositepodgroups"},
	}
}

// byDefault is what an API server of 1.37 serves unless it is told otherwise.
func byDefault() map[string][]string {
	return map[string][]string{"resource.k8s.io/v1": everything()["resource.k8s.io/v1"]}
}

// without is byDefault without some resources of resource.k8s.io/v1.
func without(resources ...string) map[string][]string {
	serves := byDefault()
	serves["resource.k8s.io/v1"] = slices.DeleteFunc(serves["resource.k8s.io/v1"], func(r string) bool { return slices.Contains(resources, r) })
	return serves
}

// fakeDiscovery answers as the discovery of an API server would: what it serves by
// group version, and its version. Before that, it refuses requests with code as
// often as refusals says, and always if that is below 0.
type fakeDiscovery struct {
	serves   map[string][]string
	code     int
	refusals int
	requests int
}

func (d *fakeDiscovery) RoundTrip(request *http.Request) (*http.Response, error) {
	d.requests++
	if d.refusals != 0 {
		d.refusals--
		return d.answer(request, d.code, &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(d.code), Message: "not today",
			Reason: map[int]metav1.StatusReason{
				http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusForbidden: metav1.StatusReasonForbidden,
			}[d.code],
		})
	}
	if request.URL.Path == "/version" {
		return d.answer(request, http.StatusOK, apimachineryversion.Info{GitVersion: "v1.36.2"})
	}
	version := strings.TrimPrefix(request.URL.Path, "/apis/")
	resources, ok := d.serves[version]
	if !ok {
		return d.answer(request, http.StatusNotFound, "404 page not found")
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return d.answer(request, http.StatusOK, list)
}

func (*fakeDiscovery) answer(request *http.Request, code int, body any) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(content))),
	}, nil
}

// config is how to reach it.
func (d *fakeDiscovery) config() *rest.Config {
	return &rest.Config{Host: "http://kubernetes", Transport: d, QPS: -1}
}

func served(t *testing.T, serves map[string][]string) *APIs {
	t.Helper()
	apis, err := Ask(t.Context(), (&fakeDiscovery{serves: serves}).config())
	if err != nil {
		t.Fatal(err)
	}
	return apis
}

func TestWhatAnAPIServerLacksIsSaidInOneLine(t *testing.T) {
	tests := map[string]struct {
		serves map[string][]string
		want   string
	}{
		"nothing is lacking":                              {everything(), ""},
		"an API server of 1.37 as it comes lacks nothing": {byDefault(), ""},
		"no rules of device taints, as before 1.37": {
			without("devicetaintrules"),
			"API server v1.36.2 does not serve devicetaintrules of resource.k8s.io/v1, so device taint rules are not heeded (the feature gate DRADeviceTaintRules is off); everything else is scheduled",
		},
		"no group version, as before 1.34": {
			nil,
			"API server v1.36.2 does not serve resourceclaims, resourceslices, deviceclasses of resource.k8s.io/v1, so Pods with resource claims wait, or run without their devices where the API server drops the claims" +
				"; nor devicetaintrules of resource.k8s.io/v1, so device taint rules are not heeded (the feature gate DRADeviceTaintRules is off); everything else is scheduled",
		},
		"one resource switched off": {
			without("deviceclasses"),
			"API server v1.36.2 does not serve deviceclasses of resource.k8s.io/v1, so Pods with resource claims wait, or run without their devices where the API server drops the claims; everything else is scheduled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := served(t, tc.serves).Remark(); got != tc.want {
				t.Errorf("it says\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestAnAPIServerThatHasNoAnswerYetIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeDiscovery{serves: without("devicetaintrules"), code: http.StatusServiceUnavailable, refusals: 20}
		apis, err := Ask(t.Context(), server.config())
		if err != nil {
			t.Fatal(err)
		}
		if apis.Remark() == "" {
			t.Error("the answer that came in the end was not heeded")
		}
	})
}

// TestAnAPIServerWithoutAnAnswerEndsTheProgram: to take an error for the lack of an
// API would switch off what is there.
func TestAnAPIServerWithoutAnAnswerEndsTheProgram(t *testing.T) {
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			server := &fakeDiscovery{serves: everything(), code: code, refusals: -1}
			_, err := Ask(t.Context(), server.config())
			if err == nil || !strings.Contains(err.Error(), "resource.k8s.io/v1") || !strings.Contains(err.Error(), "not today") {
				t.Errorf("code %d: the error is %v, want one with what was asked for and what the API server said", code, err)
			}
			if took := time.Since(began); took < time.Minute || took > time.Minute+15*time.Second {
				t.Errorf("code %d: gave up after %v, want a minute", code, took)
			}
		})
	}
}

// TestFeatureGatesFitTheAPIServer: what the user says, on which API server, and what
// comes of it.
func TestFeatureGatesFitTheAPIServer(t *testing.T) {
	const native = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
	tests := map[string]struct {
		serves   map[string][]string
		said     string
		wantRule bool // DRADeviceTaintRules is on
		wantErr  []string
	}{
		"rules of device taints are served":                {serves: byDefault(), wantRule: true},
		"they are not, and nobody has said anything":       {serves: without("devicetaintrules")},
		"they are not, and the user does not want them":    {serves: without("devicetaintrules"), said: "DRADeviceTaintRules=false"},
		"they are not, and the user says something else":   {serves: without("devicetaintrules"), said: "SchedulerAsyncAPICalls=false"},
		"they are not, and all of beta is off":             {serves: without("devicetaintrules"), said: "AllBeta=false"},
		"they are served, and the user does not want them": {serves: byDefault(), said: "DRADeviceTaintRules=false"},
		"they are not, and the user wants them": {
			serves: without("devicetaintrules"), said: "DRADeviceTaintRules=true",
			wantErr: []string{"feature gate DRADeviceTaintRules", "v1.36.2", "devicetaintrules of resource.k8s.io/v1"},
		},
		"there is no resource.k8s.io/v1, and the user wants them": {
			said:    "DRADeviceTaintRules=true",
			wantErr: []string{"feature gate DRADeviceTaintRules", "devicetaintrules of resource.k8s.io/v1"},
		},
		"Kubernetes' own PodGroups are wanted and served": {serves: everything(), said: native, wantRule: true},
		"they are wanted and not served": {
			serves: byDefault(), said: native,
			wantErr: []string{"feature gate GenericWorkload", "v1.36.2", "podgroups of scheduling.k8s.io/v1beta1"},
		},
		"they are wanted with all of beta, and not served": {
			serves: byDefault(), said: "AllBeta=true",
			wantErr: []string{"feature gate GenericWorkload", "podgroups of scheduling.k8s.io/v1beta1"},
		},
		"composite ones are wanted and served": {serves: everything(), said: native + ",CompositePodGroup=true", wantRule: true},
		"composite ones are wanted and not served": {
			serves: map[string][]string{"scheduling.k8s.io/v1beta1": {"podgroups"}}, said: native + ",CompositePodGroup=true",
			wantErr: []string{"feature gate CompositePodGroup", "compositepodgroups of scheduling.k8s.io/v1alpha3"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
			if err := gates.Set(tc.said); err != nil {
				t.Fatal(err)
			}
			err := served(t, tc.serves).FitGates(gates)
			if len(tc.wantErr) == 0 && err != nil || len(tc.wantErr) > 0 && err == nil {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			for _, want := range tc.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q lacks %q", err, want)
				}
			}
			if err == nil && gates.Enabled(features.DRADeviceTaintRules) != tc.wantRule {
				t.Errorf("DRADeviceTaintRules is %v, want %v", !tc.wantRule, tc.wantRule)
			}
			for _, err := range gates.Validate() {
				t.Errorf("the gates don't go together: %v", err)
			}
		})
	}
}

// TestDiscoveryCostsAFewRequests: whatever there is to ask, a group version is asked
// for once.
func TestDiscoveryCostsAFewRequests(t *testing.T) {
	server := &fakeDiscovery{serves: everything()}
	if _, err := Ask(t.Context(), server.config()); err != nil {
		t.Fatal(err)
	}
	if want := len(slices.Collect(maps.Keys(server.serves))) + 1; server.requests != want {
		t.Errorf("%d requests, want %d", server.requests, want)
	}
}
