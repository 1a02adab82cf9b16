// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Backoff records the objects whose last sync failed, and when each may be tried again. Several goroutines may use one
// Backoff.
type Backoff struct {
	delays workqueue.TypedRateLimiter[Key]
	mu     sync.Mutex
	dueAt  map[Key]time.Time
}

// NewBackoff makes a Backoff with delays from the shortest to the longest.
func NewBackoff(shortest, longest time.Duration) *Backoff {
	return &Backoff{
		delays: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](shortest, longest),
		dueAt:  map[Key]time.Time{},
	}
}

// Failed records that a sync has failed, and returns the delay before the next sync.
func (b *Backoff) Failed(key Key, now time.Time) time.Duration {
	wait := b.delays.When(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dueAt[key] = now.Add(wait)
	return wait
}

// Succeeded records that an object is as it has to be.
func (b *Backoff) Succeeded(key Key) {
	b.delays.Forget(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.dueAt, key)
}

// Due returns when an object may be synced. The zero time means at once.
func (b *Backoff) Due(key Key) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dueAt[key]
}
