// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// refusals are the groups whose last write has failed. The zero refusals has none.
type refusals struct {
	mu      sync.Mutex
	byGroup map[cache.ObjectName]refusal
}

// refusal is how many writes in a row have failed, and when the next may be tried.
type refusal struct {
	failures int
	due      time.Time
}

// refuse tells that a write has failed, and returns how long the next has to wait:
//
//	min(minRetryDelay · 2^(failures-1), maxRetryDelay)
func (r *refusals) refuse(key cache.ObjectName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGroup == nil {
		r.byGroup = map[cache.ObjectName]refusal{}
	}
	failures := r.byGroup[key].failures + 1
	const most = 20 // More doublings than any bound needs.
	wait := min(minRetryDelay<<min(failures-1, most), maxRetryDelay)
	r.byGroup[key] = refusal{failures: failures, due: now.Add(wait)}
	return wait
}

// granted tells that a group is as it has to be.
func (r *refusals) granted(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byGroup, key)
}

// due is when a group may be written. The zero time means at once.
func (r *refusals) due(key cache.ObjectName) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byGroup[key].due
}
