// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// slotShare limits the slots of a namespace to slotShare times the free slots. So a namespace that is alone gets nearly
// all slots, and n busy namespaces get about one n-th each: a webhook that hangs delays only its own namespace.
const slotShare = 15

// slots limit how many requests are under way at once. Namespaces share the slots: each may have one, and more
// according to slotShare. Waiting requests of the namespace with the fewest slots come first.
type slots struct {
	size int

	mu sync.Mutex
	// used is how many slots each namespace uses; all is how many are in use altogether.
	used map[string]int
	all  int
	// waiting are the waiting requests of each namespace, each with a channel that is closed when the request may
	// begin.
	waiting map[string][]chan struct{}
}

func newSlots(size int) *slots {
	return &slots{size: size, used: make(map[string]int), waiting: make(map[string][]chan struct{})}
}

// mayHave reports whether a namespace may have one more slot. The caller holds the lock.
func (s *slots) mayHave(namespace string) bool {
	used := s.used[namespace]
	return used == 0 || used < slotShare*(s.size-s.all)
}

// take waits for a slot. The error is that of ctx.
func (s *slots) take(ctx context.Context, namespace string) error {
	s.mu.Lock()
	// Requests that already wait come first.
	if len(s.waiting[namespace]) == 0 && s.mayHave(namespace) {
		s.give(namespace)
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting[namespace] = append(s.waiting[namespace], turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting[namespace], turn)
	if i < 0 { // it has just got its slot
		s.free(namespace)
	} else {
		s.setWaiting(namespace, slices.Delete(s.waiting[namespace], i, i+1))
	}
	return ctx.Err()
}

// leave returns a slot.
func (s *slots) leave(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(namespace)
}

// inUse reports whether a request is under way.
func (s *slots) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all > 0
}

// give gives a namespace one more slot. The caller holds the lock.
func (s *slots) give(namespace string) {
	s.used[namespace]++
	s.all++
}

// free takes a slot from a namespace, and starts the requests that may begin now. The caller holds the lock.
func (s *slots) free(namespace string) {
	s.all--
	if s.used[namespace]--; s.used[namespace] == 0 {
		delete(s.used, namespace)
	}
	for {
		next, found := "", false
		for waits := range s.waiting {
			if s.mayHave(waits) && (!found || cmp.Or(cmp.Compare(s.used[waits], s.used[next]), cmp.Compare(waits, next)) < 0) {
				next, found = waits, true
			}
		}
		if !found {
			return
		}
		turns := s.waiting[next]
		s.give(next)
		close(turns[0])
		s.setWaiting(next, turns[1:])
	}
}

// setWaiting sets the waiting requests of a namespace. The caller holds the lock.
func (s *slots) setWaiting(namespace string, turns []chan struct{}) {
	if len(turns) == 0 {
		delete(s.waiting, namespace)
		return
	}
	s.waiting[namespace] = turns
}
