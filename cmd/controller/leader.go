// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/leading"
)

// Times of the election. By default a leader takes up to 10 s to renew the lease, and another 10 s to release it,
// before it stops leading. That is longer than the lease of 15 s, so another leader could start first. The times here
// satisfy
//
//	retryPeriod + 2 · renewDeadline < leaseDuration
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 6 * time.Second
	retryPeriod   = 2 * time.Second
)

// newLeaseClient returns a client for the election alone, with a rate limit of its own (client-go's default): if
// renewing the lease had to wait behind a thousand creations of Pods, the lease would be lost. A request may take at
// most half of the renewal deadline, including pauses that the API server asks for (Retry-After), as with
// kube-scheduler's client.
func newLeaseClient(config *rest.Config) (coordinationv1client.LeasesGetter, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = rest.DefaultQPS, rest.DefaultBurst, nil
	own.Timeout = renewDeadline / 2
	client, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the client of the election: %w", err)
	}
	return client, nil
}

// watchfulLock notices that another replica holds the lease while this process still leads. That happens if the process
// was suspended for longer than the lease lasts. client-go alone would go on until the renewal deadline.
type watchfulLock struct {
	resourcelock.Interface
	leads   func() bool
	deposed func()
	// heard is called when the lease was read.
	heard func()
}

// Get implements resourcelock.Interface.
func (l *watchfulLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.heard()
	}
	if err == nil && l.leads() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.deposed()
	}
	return record, raw, err
}

// leadWhenElected runs `lead` while this process holds the lease. If the lease can't be renewed, leadWhenElected
// returns an error, and the process has to exit, so that no work continues; until then `fence` refuses writes. `heard`
// is called each time the lease was read.
func leadWhenElected(ctx context.Context, leases coordinationv1client.LeasesGetter, config configv1alpha1.LeaderElection,
	fence *leading.Fence, heard func(), lead func(context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding a name for the election: %w", err)
	}
	// A process that is asked to end keeps the lease until its work has ended.
	election, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var leads atomic.Bool
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			stop()
		}
	})()
	var leadError error
	identity := host + "_" + uuid.NewString()
	deposed := func() { // What was begun is not brought to its end: another one leads.
		klog.FromContext(ctx).Error(nil, "Another replica has the lease, this one ends at once")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: fence.Lock(&watchfulLock{leads: leads.Load, deposed: deposed, heard: heard, Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *config.Namespace, Name: *config.Name},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}}),
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Name:            programName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(elected context.Context) {
				leads.Store(true)
				leased, end := context.WithCancel(elected)
				defer end()
				defer context.AfterFunc(ctx, end)()
				err := lead(leased)
				if elected.Err() == nil { // Else the lease has ended the work, and not the work the lease.
					leadError = err
					stop()
				}
			},
			OnStoppedLeading: func() { klog.FromContext(ctx).Info("Not the leader any more") },
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the election: %w", err)
	}
	elector.Run(election)
	if election.Err() == nil {
		return fmt.Errorf("the lease could not be renewed for %v", renewDeadline)
	}
	return leadError
}
