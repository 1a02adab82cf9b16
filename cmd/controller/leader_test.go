// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller"
	"github.com/lockstep-k8s/lockstep/internal/leading"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
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

// TestAStandbyWaitsForNoAnswerForLong: neither for one that does not come, nor for as long as an answer asks for. It would not
// see that the lease has run out.
func TestAStandbyWaitsForNoAnswerForLong(t *testing.T) {
	for name, api := range map[string]inMemory{
		"the API server hangs": {handler: http.NotFoundHandler(), takes: time.Hour},
		"it asks for patience": {handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusServiceUnavailable)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leases, err := newLeaseClient(&rest.Config{Host: "http://api", Transport: api})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if _, err := leases.Leases("a").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
					t.Error("there is a lease")
				}
				if took := time.Since(begun); took > renewDeadline/2 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestALeaseThatCannotBeRenewedIsGivenUpByOneThatWritesNothingAnyMore: client-go tells those that work only after that.
func TestALeaseThatCannotBeRenewedIsGivenUpByOneThatWritesNothingAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		config, fence := apiserver.New(t).Config(), leading.NewFence(leaseDuration)
		var works, wrote atomic.Bool
		write := func() bool {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://api", nil)
			answer, err := fence.Wrap(inMemory{handler: http.NotFoundHandler()}).RoundTrip(r)
			if err == nil {
				err = answer.Body.Close()
			}
			return err == nil
		}
		gaveUp, next := false, config.Transport
		config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut && works.Load() {
				body, err := io.ReadAll(r.Body)
				if err != nil || bytes.Contains(body, []byte(host)) {
					return nil, errors.New("no renewal comes through")
				}
				gaveUp = true
				if write() {
					t.Error("it writes while the lease is given up")
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			return next.RoundTrip(r)
		})
		leases, err := newLeaseClient(config)
		if err != nil {
			t.Fatal(err)
		}
		err = leadWhenElected(t.Context(), leases, configv1alpha1.LeaderElection{Namespace: new("a"), Name: new("lockstep-controller")}, fence, func() {},
			func(ctx context.Context) error {
				works.Store(true)
				wrote.Store(write())
				<-ctx.Done()
				return ctx.Err()
			})
		if !wrote.Load() || !gaveUp {
			t.Errorf("it has written as a leader: %t, and given up the lease: %t", wrote.Load(), gaveUp)
		}
		if err == nil || !strings.Contains(err.Error(), "could not be renewed") {
			t.Errorf("it ends with %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
