// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/internal/dashboard"
)

// TestAllTokensOfSomebodyShareOneBound on requests, and all kinds of objects.
func TestAllTokensOfSomebodyShareOneBound(t *testing.T) {
	visitors := newVisitors(&rest.Config{Host: "https://127.0.0.1:1"}, nil)
	of := func(name, token string) *dashboard.Visitor {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		info := &user.DefaultInfo{Name: name, Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {token}}}
		visitor, err := visitors.of(r.WithContext(request.WithUser(r.Context(), info)))
		if err != nil {
			t.Fatal(err)
		}
		return visitor
	}
	first, second, other := of("ada", "1"), of("ada", "2"), of("bob", "3")
	limit := first.Reader.Kube.CoreV1().RESTClient().GetRateLimiter()
	if first == second || limit != second.Reader.Kube.CoreV1().RESTClient().GetRateLimiter() || limit != first.Reader.Lockstep.FrameworkcontrollerV1().RESTClient().GetRateLimiter() {
		t.Error("a visitor has as many bounds as tokens, or kinds of objects")
	}
	if limit == other.Reader.Kube.CoreV1().RESTClient().GetRateLimiter() {
		t.Error("two visitors share a bound")
	}
	if limit.QPS() != visitorQPS {
		t.Errorf("%v requests a second are sent, want %d", limit.QPS(), visitorQPS)
	}
}
