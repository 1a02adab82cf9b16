// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/controller"
)

// TestLeaseIsRenewedWhileAllElseWaits uses up the rate of the controller's clients,
// whichever way it is set.
func TestLeaseIsRenewedWhileAllElseWaits(t *testing.T) {
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		asked[request.URL.Path]++
		response.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: 0.0001, Burst: 1}
	clients, err := controller.NewClients(config)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := newLeaseClient(config)
	if err != nil {
		t.Fatal(err)
	}
	// A request that has to wait for longer than this fails without waiting.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		_, _ = clients.Kube.CoreV1().Pods("a").Get(ctx, "a", metav1.GetOptions{})
		_, _ = leases.Leases("a").Get(ctx, "a", metav1.GetOptions{})
	}
	const pod, lease = "/api/v1/namespaces/a/pods/a", "/apis/coordination.k8s.io/v1/namespaces/a/leases/a"
	if asked[pod] != 1 {
		t.Errorf("%d requests for the Pod were sent, want the one of the burst", asked[pod])
	}
	if asked[lease] != 3 {
		t.Errorf("%d requests for the lease were sent, want all 3", asked[lease])
	}
}
