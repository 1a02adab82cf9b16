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
	"k8s.io/client-go/tools/leaderelection/resourcelock"

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

func TestALeaderNoticesThatAnotherHasTheLease(t *testing.T) {
	for name, tc := range map[string]struct {
		holder string
		leads  bool
		want   bool
	}{
		"another leads, and this one takes itself for the leader": {"other", true, true},
		"another leads, and this one waits":                       {"other", false, false},
		"this one leads":                                          {"own", true, false},
		"the lease was released":                                  {"", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			deposed := false
			lock := &watchfulLock{
				Interface: fixedLock{holder: tc.holder},
				leads:     func() bool { return tc.leads },
				deposed:   func() { deposed = true },
				heard:     func() {},
			}
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if deposed != tc.want {
				t.Errorf("the process takes itself for deposed: %t, want %t", deposed, tc.want)
			}
		})
	}
}

// fixedLock is a lock of "own" that somebody holds.
type fixedLock struct {
	resourcelock.Interface
	holder string
}

func (l fixedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (fixedLock) Identity() string { return "own" }

// TestALostLeaseIsGivenUpBeforeItExpires: client-go takes the deadline twice, to renew
// and to release.
func TestALostLeaseIsGivenUpBeforeItExpires(t *testing.T) {
	if retryPeriod+2*renewDeadline >= leaseDuration {
		t.Errorf("a leader may go on for %v after its last renewal, want less than the %v of the lease",
			retryPeriod+2*renewDeadline, leaseDuration)
	}
}
