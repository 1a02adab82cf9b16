// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// refusals are the groups whose last write has failed, and when the next may be tried.
type refusals struct {
	delays workqueue.TypedRateLimiter[cache.ObjectName]
	mu     sync.Mutex
	dueAt  map[cache.ObjectName]time.Time
}

func newRefusals() *refusals {
	return &refusals{
		delays: workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minRetryDelay, maxRetryDelay),
		dueAt:  map[cache.ObjectName]time.Time{},
	}
}

// refuse tells that a write has failed, and returns how long the next has to wait.
func (r *refusals) refuse(key cache.ObjectName, now time.Time) time.Duration {
	wait := r.delays.When(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dueAt[key] = now.Add(wait)
	return wait
}

// granted tells that a group is as it has to be.
func (r *refusals) granted(key cache.ObjectName) {
	r.delays.Forget(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.dueAt, key)
}

// due is when a group may be written. The zero time means at once.
func (r *refusals) due(key cache.ObjectName) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dueAt[key]
}
