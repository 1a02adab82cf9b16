// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// fitted is a scheduler that was started on an API server, with feature gates as on the
// command line.
func fitted(t *testing.T, serves map[string][]string, gates string) *APIs {
	t.Helper()
	apis := served(t, serves)
	set := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	if err := set.Set(gates); err != nil {
		t.Fatal(err)
	}
	if err := apis.FitGates(set); err != nil {
		t.Fatal(err)
	}
	return apis
}

// replicas are those of an API server behind one address: each question is answered by the
// next one of them, in turn.
type replicas struct {
	mu    sync.Mutex
	of    []*fakeDiscovery
	asked int
}

func (r *replicas) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answering := r.of[r.asked%len(r.of)]
	if request.URL.Path == "/version" { // the last part of a question
		r.asked++
	}
	return answering.RoundTrip(request)
}

// changeTo puts others in the place of the replicas.
func (r *replicas) changeTo(of ...*fakeDiscovery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = of
}

// TestASchedulerIsStartedAgainWhenItsAPIServerIsUpgraded: an hour after it was started there
// is another API server, for good. What it says is told with what the scheduler was made for.
func TestASchedulerIsStartedAgainWhenItsAPIServerIsUpgraded(t *testing.T) {
	old := map[string][]string{}
	tests := map[string]struct {
		was, is map[string][]string
		gates   string
		want    string // empty: the scheduler goes on
	}{
		"it is the same": {was: byDefault(), is: byDefault()},
		"it serves device taint rules": {
			was: without("devicetaintrules"), is: byDefault(),
			want: "API server v1.36.2 serves devicetaintrules of resource.k8s.io/v1 now, which it did not: the program ends, to be started again for that",
		},
		"it serves claims": {
			was: old, is: without("devicetaintrules"),
			want: "API server v1.36.2 serves resourceclaims, resourceslices, deviceclasses of resource.k8s.io/v1 now, which it did not: the program",
		},
		"it serves claims no more": {
			was: byDefault(), is: old,
			want: "API server v1.36.2 does not serve resourceclaims, resourceslices, deviceclasses, devicetaintrules of resource.k8s.io/v1 any more: the program",
		},
		"it serves some and not others": {
			was: without("devicetaintrules"), is: without("resourceslices"),
			want: "serves devicetaintrules of resource.k8s.io/v1 now, which it did not, and does not serve resourceslices of resource.k8s.io/v1 any more: the program",
		},
		"it serves what nobody has asked for": {was: byDefault(), is: everything()},
		"it serves what is switched off": {
			was: without("devicetaintrules"), is: byDefault(), gates: string(kube.DRADeviceTaintRules) + "=false",
		},
		// Without it the program would not start, and the gang that waits is none the better.
		"it lacks what is switched on": {
			was: byDefault(), is: without("devicetaintrules"), gates: string(kube.DRADeviceTaintRules) + "=true",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				apis := fitted(t, tc.was, tc.gates)
				server := &replicas{of: []*fakeDiscovery{{serves: tc.was}}}
				upgraded := time.Now().Add(time.Hour)
				time.AfterFunc(time.Hour, func() { server.changeTo(&fakeDiscovery{serves: tc.is}) })
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				got, err := AwaitChange(ctx, apis, &rest.Config{Host: "http://kubernetes", Transport: server, QPS: -1})
				if err != nil || !strings.HasPrefix(got, "API server") && tc.want != "" || !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("it ends with %q, %v; want %q", got, err, tc.want)
				}
				if most := 25 * time.Minute; tc.want != "" && time.Since(upgraded) > most {
					t.Errorf("it ends %v after the upgrade, want %v at most", time.Since(upgraded), most)
				}
				if server.asked > 24*60 {
					t.Errorf("it has asked %d times in a day", server.asked)
				}
			})
		})
	}
}

// TestAnAPIServerThatHasNotSettledEndsNoScheduler: it may go on so for days.
func TestAnAPIServerThatHasNotSettledEndsNoScheduler(t *testing.T) {
	before, after := without("devicetaintrules"), byDefault()
	var often []*fakeDiscovery
	for range changeAnswers - 1 {
		often = append(often, &fakeDiscovery{serves: after})
	}
	tests := map[string][]*fakeDiscovery{
		"one replica of three is upgraded":   {{serves: before}, {serves: after}, {serves: before}},
		"two replicas of three are upgraded": {{serves: after}, {serves: after}, {serves: before}},
		"one of many is not":                 append(often, &fakeDiscovery{serves: before}),
		"each has another half":              {{serves: after}, {serves: without("resourceslices")}},
		"it answers seldom":                  append(often, &fakeDiscovery{code: http.StatusServiceUnavailable, refusals: -1}),
	}
	for name, of := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*24*time.Hour)
				defer cancel()
				server := &alternating{replicas: replicas{of: of}}
				if got, err := AwaitChange(ctx, fitted(t, before, ""), &rest.Config{Host: "http://kubernetes", Transport: server, QPS: -1}); err != nil || got != "" {
					t.Errorf("it ends with %q, %v", got, err)
				}
			})
		})
	}
}

// alternating are replicas of which one that fails is not asked a second thing.
type alternating struct{ replicas }

func (r *alternating) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.replicas.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusServiceUnavailable {
		r.mu.Lock()
		r.asked++
		r.mu.Unlock()
	}
	return response, err
}

// TestASchedulerRunsForAWhileBeforeItEnds: it was started in the middle of an upgrade, and was
// told by a replica that is no more.
func TestASchedulerRunsForAWhileBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server := &fakeDiscovery{serves: byDefault()}
		got, err := AwaitChange(t.Context(), fitted(t, without("devicetaintrules"), ""), server.config())
		if ran := time.Since(began); err != nil || got == "" || ran < leastLife || ran > 2*leastLife {
			t.Errorf("it ends after %v with %q, %v", ran, got, err)
		}
	})
}

// TestEachQuestionMayBeAnsweredByAnotherReplica: a balancer of connections gives each of them
// to one replica for as long as it lasts.
func TestEachQuestionMayBeAnsweredByAnotherReplica(t *testing.T) {
	var mu sync.Mutex
	connections := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}})
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			defer mu.Unlock()
			connections++
		}
	}
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, DisableCompression: true, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	again, err := askAnew(config)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if _, err := again(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if connections != n+1 {
			t.Errorf("%d connections for %d questions", connections, n+1)
		}
		mu.Unlock()
	}
}
