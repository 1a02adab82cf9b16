// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"sync"
	"time"
)

// Watch records which syncs are running, and since when. It is safe for concurrent use. The zero value is ready for
// use.
type Watch struct {
	mu    sync.Mutex
	begun map[Key]time.Time
}

// Begin records that the sync of an object begins. There is at most one sync of an object at a time.
func (w *Watch) Begin(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun == nil {
		w.begun = map[Key]time.Time{}
	}
	w.begun[key] = time.Now()
}

// End records the end.
func (w *Watch) End(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.begun, key)
}

// Longest returns the object whose sync has been running for the longest time, and for how long; 0 if no sync is
// running.
func (w *Watch) Longest() (Key, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var oldest Key
	var longest time.Duration
	for key, begun := range w.begun {
		if running := time.Since(begun); running > longest {
			oldest, longest = key, running
		}
	}
	return oldest, longest
}
