// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leading keeps a former leader from writing. A process that was suspended for longer than its lease continues
// where it stopped, and writes as if it still led until it has tried to renew the lease. A leader that gives up its
// lease would also still write until its work is stopped.
//
// A Fence refuses writes from the moment that the lease has run out, by the process's clock, or is given up.
package leading

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Fence refuses writes when the lease has run out, or is given up. Before the lease is held for the first time it
// refuses nothing.
type Fence struct {
	lasts time.Duration
	// until is the time up to which no other replica can have the lease. If this process gave the lease up, it is when
	// it did. Nil until the process first had the lease.
	until atomic.Pointer[time.Time]
}

// NewFence makes a fence for a lease that lasts so long.
func NewFence(lasts time.Duration) *Fence { return &Fence{lasts: lasts} }

// Lock returns a lock with renewals that the fence sees.
func (f *Fence) Lock(lock resourcelock.Interface) resourcelock.Interface {
	return &fencedLock{Interface: lock, fence: f}
}

// fencedLock is used by an election alone, which does one thing after the other.
type fencedLock struct {
	resourcelock.Interface
	fence *Fence
	// holder is the holder of the lease when it was last read.
	holder string
}

// Get implements resourcelock.Interface.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface. client-go releases the lease of a suspended leader even if it has just read
// that another process holds the lease. That would take the lease from the new leader, so Update refuses it.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != "" && l.holder != l.Identity() {
		return fmt.Errorf("the lease is not released: %s holds it", l.holder)
	}
	if record.HolderIdentity == "" {
		// Another replica may have it before the answer comes. Work that still goes on is ended only then.
		l.fence.until.Store(new(time.Now()))
	}
	return l.write(ctx, record, l.Interface.Update)
}

// write writes the lease. If that succeeds, write records when it began. Other processes count the lease from when they
// saw it, which is later.
func (l *fencedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	until := time.Now().Add(l.fence.lasts)
	if err := write(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.fence.until.Store(&until)
	}
	return nil
}

// Wrap returns a transport that refuses writes once the lease has run out. The client that renews the lease must not
// use this transport.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if until := f.until.Load(); until != nil && r.Method != http.MethodGet && !time.Now().Before(*until) {
			return nil, fmt.Errorf("not sent: the lease has ended %v ago, and another replica may lead", time.Since(*until).Round(time.Millisecond))
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
