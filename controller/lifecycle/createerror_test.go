// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestPodCreationRefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const again frameworkv1.CompletionCode = 0
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
			got := PodCreationRefusal(tc.err)
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
		"a busy API server":                   {apierrors.NewTooManyRequests("busy", 1), frameworkv1.ReasonCreationRefused},
		"an API server that can't be reached": {errors.New("connection refused"), frameworkv1.ReasonCreationRefused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := BlockReason(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
