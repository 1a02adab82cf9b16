// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestPodCreationRefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const again frameworkv1.CompletionCode = 0
	quoting := func(value string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{
			field.Invalid(field.NewPath("metadata", "labels"), value, "must be a label"),
		})
	}
	forbidden := func(words string) error { return apierrors.NewForbidden(pods, "p", errors.New(words)) }
	tests := map[string]struct {
		err  error
		want frameworkv1.CompletionCode
	}{
		"an invalid Pod is refused for good":          {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), -200},
		"a Pod that is too large is refused for good": {apierrors.NewRequestEntityTooLargeError("big"), -200},
		"a forbidden Pod is refused, maybe not for good": {
			apierrors.NewForbidden(pods, "p", errors.New("policy")), -310},
		"a bad request is refused, maybe not for good": {apierrors.NewBadRequest("bad"), -310},
		"an exceeded quota is tried again": {
			apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), again},
		"a PriorityClass that does not exist may come": {
			apierrors.NewForbidden(pods, "p", errors.New("no PriorityClass with name high was found")), again},
		"a ServiceAccount that does not exist may come":               {forbidden(`error looking up service account ns/a: serviceaccount "a" not found`), again},
		"a RuntimeClass that does not exist may come":                 {forbidden(`pod rejected: RuntimeClass "gvisor" not found`), again},
		"a Pod that contradicts its RuntimeClass, maybe not for good": {forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"), -310},
		"a quota of which nothing is counted yet is tried again":      {forbidden("status unknown for quota: q, resources: pods"), again},
		"a quota that has to be there is waited for":                  {forbidden("insufficient quota to consume: cpu"), again},
		"limit ranges that can't be read are tried again": {
			forbidden(`unable to CREATE {"" "v1" "pods"} at this time because there was an error enforcing limit ranges`), again},
		"an API server that has just begun is tried again": {forbidden("not yet ready to handle request"), again},
		"a right that the controller lacks may come": {apierrors.NewForbidden(pods, "", errors.New(
			`User "system:serviceaccount:lockstep-system:lockstep-controller" cannot create resource "pods" in API group "" in the namespace "ns"`)), again},
		"a right to the owner that it lacks may come": {forbidden(
			"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), again},
		"a right to delete the owner may come, too":                                   {forbidden("cannot set an ownerRef on a resource you can't delete: , <nil>"), again},
		"a Pod that its namespace's level forbids, maybe not for good":                {forbidden(`violates PodSecurity "restricted:latest": runAsNonRoot != true`), -310},
		"an invalid Pod that speaks of a quota is refused for good":                   {quoting("exceeded quota"), -200},
		"an invalid Pod that speaks of a PriorityClass is refused for good":           {quoting("no PriorityClass with name"), -200},
		"an invalid Pod that speaks of an unrecognized object is refused for good":    {quoting("object provided is unrecognized"), -200},
		"a bad request that speaks of a quota is refused, maybe not for good":         {apierrors.NewBadRequest("exceeded quota"), -310},
		"a forbidden Pod that speaks of what is unrecognized, maybe not for good too": {apierrors.NewForbidden(pods, "p", errors.New("object provided is unrecognized")), -310},
		"an unrecognized object is tried again": {
			apierrors.NewBadRequest("the object provided is unrecognized (must be of type Pod)"), again},
		"a Pod that exists is tried again":     {apierrors.NewAlreadyExists(pods, "p"), again},
		"a missing namespace is tried again":   {apierrors.NewNotFound(pods, "p"), again},
		"a busy API server is tried again":     {apierrors.NewTooManyRequests("busy", 1), again},
		"an internal error is tried again":     {apierrors.NewInternalError(errors.New("oops")), again},
		"an unreachable server is tried again": {errors.New("connection refused"), again},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := PodRefusal(tc.err)
			if got == nil {
				if tc.want != again {
					t.Errorf("got no refusal, want %d", tc.want)
				}
				return
			}
			if got.Code != tc.want {
				t.Errorf("got %d, want %d", got.Code, tc.want)
			}
			if !strings.HasPrefix(got.Diagnostics, "Failed to create Pod: {") || !strings.HasSuffix(got.Diagnostics, "}") {
				t.Errorf("diagnostics %q do not end in JSON", got.Diagnostics)
			}
		})
	}
}

func TestReasonOfARefusalForNow(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tests := map[string]struct {
		err  error
		want string
	}{
		"an exceeded quota":                   {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), frameworkv1.ReasonQuotaExceeded},
		"a PriorityClass that does not exist": {apierrors.NewForbidden(pods, "p", errors.New("no PriorityClass with name high was found")), frameworkv1.ReasonPriorityClassNotFound},
		"a name that somebody else's Pod has": {apierrors.NewAlreadyExists(pods, "p"), frameworkv1.ReasonNameTaken},
		"a webhook that does not answer":      {apierrors.NewInternalError(errors.New("failed calling webhook")), frameworkv1.ReasonCreationRefused},
		"a webhook that speaks of a quota":    {apierrors.NewInternalError(errors.New("failed calling webhook: exceeded quota")), frameworkv1.ReasonCreationRefused},
		"one that speaks of a PriorityClass":  {apierrors.NewInternalError(errors.New("no PriorityClass with name high")), frameworkv1.ReasonCreationRefused},
		"a busy API server":                   {apierrors.NewTooManyRequests("busy", 1), frameworkv1.ReasonCreationRefused},
		"an API server that can't be reached": {errors.New("connection refused"), frameworkv1.ReasonCreationRefused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.BlockReason(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestALongRefusalIsCut holds that what others say of a Pod takes little room in the
// status, whatever they quote.
func TestALongRefusalIsCut(t *testing.T) {
	invalid := func(value string, times int) error {
		var errs field.ErrorList
		for range times {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(value), value, "must be short"))
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "fw-w-0", errs)
	}
	tests := map[string]error{
		"a long value":            invalid(strings.Repeat("x", 1<<20), 1),
		"a value of quotes":       invalid(strings.Repeat(`"`, 1<<20), 1),
		"a value of zeros":        invalid(strings.Repeat("\x00", 1<<20), 1),
		"characters of two bytes": invalid(strings.Repeat("ä", 1<<19), 1),
		"ones of three bytes":     invalid("x"+strings.Repeat("€", 1<<18), 1),
		"many causes":             invalid("x", 10_000),
		"a webhook that says a lot": &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReason(strings.Repeat("r", 1<<20)), Code: http.StatusForbidden,
			Details: &metav1.StatusDetails{Name: strings.Repeat("n", 1<<20), Kind: strings.Repeat("k", 1<<20)},
		}},
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			got := PodRefusal(err)
			if got == nil {
				t.Fatal("it is no refusal for good")
			}
			if len(got.Diagnostics) > 5<<10 || !utf8.ValidString(got.Diagnostics) {
				t.Errorf("the diagnostics have %d bytes: %.99q", len(got.Diagnostics), got.Diagnostics)
			}
			var told metav1.Status
			if err := json.Unmarshal([]byte(strings.TrimPrefix(got.Diagnostics, "Failed to create Pod: ")), &told); err != nil {
				t.Fatalf("diagnostics %.99q do not end in JSON: %v", got.Diagnostics, err)
			}
			if told.Code == 0 || strings.ContainsRune(told.Message, utf8.RuneError) {
				t.Errorf("got code %d, message %.99q", told.Code, told.Message)
			}
		})
	}
	t.Run("a template that quotes a long time", func(t *testing.T) {
		f, status := attempted(t, nil, `{"metadata":{"creationTimestamp":"`+strings.Repeat("ä", 100_000)+`"}}`)
		_, err := recipe(f, status, 0)()
		if got := PodRefusal(errTemplate{err}).Diagnostics; len(got) > 5<<10 || !strings.Contains(got, "no Pod template") {
			t.Errorf("the diagnostics have %d bytes: %.99q", len(got), got)
		}
	})
	t.Run("one of ordinary length", func(t *testing.T) {
		err := invalid(strings.Repeat("x", 200), 3)
		want, _ := json.Marshal(err.(*apierrors.StatusError).Status())
		if got := PodRefusal(err).Diagnostics; got != "Failed to create Pod: "+string(want) {
			t.Errorf("it became %s, want %s", got, want)
		}
	})
}
