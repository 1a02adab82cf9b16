// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// slotShare is how many times what is free a namespace may have of the slots. So one that is alone has
// nearly all of them, and of n that have as many as they may, each has about one part in n: what a
// webhook that hangs costs its namespace, it costs no other.
const slotShare = 15

// slots bound how many requests are under way at once. Namespaces share them: each may have one, and more
// than that as slotShare says. Those that wait for a slot have it in the order of how few they have.
type slots struct {
	size int

	mu sync.Mutex
	// used are how many each namespace has, and all are all of them.
	used map[string]int
	all  int
	// waiting are the requests of each namespace that wait, each with a channel that is closed when it
	// may begin.
	waiting map[string][]chan struct{}
}

func newSlots(size int) *slots {
	return &slots{size: size, used: make(map[string]int), waiting: make(map[string][]chan struct{})}
}

// mayHave says whether a namespace may have one more. The caller holds the lock.
func (s *slots) mayHave(namespace string) bool {
	used := s.used[namespace]
	return used == 0 || used < slotShare*(s.size-s.all)
}

// take waits for a slot. The error is that of ctx.
func (s *slots) take(ctx context.Context, namespace string) error {
	s.mu.Lock()
	// Whoever waits already comes first.
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
	if i < 0 { // it has just got its turn
		s.free(namespace)
	} else {
		s.setWaiting(namespace, slices.Delete(s.waiting[namespace], i, i+1))
	}
	return ctx.Err()
}

// leave gives a slot back.
func (s *slots) leave(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(namespace)
}

// inUse says whether a request is under way.
func (s *slots) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all > 0
}

// give has a namespace have one more. The caller holds the lock.
func (s *slots) give(namespace string) {
	s.used[namespace]++
	s.all++
}

// free takes one from a namespace, and has those begin that may now. The caller holds the lock.
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

// setWaiting sets who waits of a namespace. The caller holds the lock.
func (s *slots) setWaiting(namespace string, turns []chan struct{}) {
	if len(turns) == 0 {
		delete(s.waiting, namespace)
		return
	}
	s.waiting[namespace] = turns
}
