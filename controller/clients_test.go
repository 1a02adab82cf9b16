// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestClientsShareOneRate sends requests by all clients in turn, with a rate that
// gives nothing back within the test: the burst is what all of them may send.
func TestClientsShareOneRate(t *testing.T) {
	tests := map[string]struct {
		burst, want int
	}{
		"a burst of 4":    {burst: 4, want: 4},
		"a burst of 1":    {burst: 1, want: 1},
		"no burst at all": {burst: 0, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answered := 0
			server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
				answered++
				response.WriteHeader(http.StatusNotFound)
			}))
			defer server.Close()
			clients, err := NewClients(&rest.Config{Host: server.URL, QPS: 0.0001, Burst: tc.burst})
			if err != nil {
				t.Fatal(err)
			}
			// A request that has to wait for longer than this fails without waiting.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var options metav1.GetOptions
			for range 3 {
				_, _ = clients.Kube.CoreV1().Pods("default").Get(ctx, "a", options)
				_, _ = clients.Lockstep.FrameworkcontrollerV1().Frameworks("default").Get(ctx, "a", options)
				_, _ = clients.Metadata.Resource(frameworkv1.SchemeGroupVersion.WithResource("frameworks")).Namespace("default").Get(ctx, "a", options)
			}
			if answered != tc.want {
				t.Errorf("%d requests were sent, want %d", answered, tc.want)
			}
		})
	}
}

// TestAClientSendsARequestOnce, even if the answer says when to come again: the
// controller has a back-off of its own, and a worker that waits.
func TestAClientSendsARequestOnce(t *testing.T) {
	answered := 0
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		answered++
		response.Header().Set("Retry-After", "7")
		http.Error(response, "Too many requests, please try again later.", http.StatusTooManyRequests)
	}))
	defer server.Close()
	clients, err := NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = clients.Kube.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the error is %v, want that there are too many requests", err)
	}
	if answered != 1 {
		t.Errorf("%d requests were sent, want 1", answered)
	}
	if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != 7 {
		t.Errorf("the API server asks for a pause of %d s, want 7", seconds)
	}
}
