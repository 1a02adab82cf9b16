// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"sync"
)

// turns limits how many pages are built at the same time: of all visitors, of pages that read a lot, and of each
// visitor. So the pages of one visitor wait for each other first.
type turns struct {
	all, large chan struct{}

	mu sync.Mutex
	of map[string]*turnsOfOne
}

// turnsOfOne are those of a visitor.
type turnsOfOne struct {
	taken chan struct{}
	// users are the requests that have or want one.
	users int
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxMaking), large: make(chan struct{}, maxLarge), of: make(map[string]*turnsOfOne)}
}

// take waits for a visitor's turn, and returns a function that ends the turn. A turn consists of up to three places,
// taken in this order: one of the visitor's, one for large pages, one of all. While take waits for one place, it does
// not hold a place that comes later.
func (t *turns) take(ctx context.Context, visitor string, large bool) (done func(), err error) {
	own := t.enter(visitor)
	wanted := []chan struct{}{own.taken, t.all}
	if large {
		wanted = []chan struct{}{own.taken, t.large, t.all}
	}
	taken := 0
	done = func() {
		for _, kind := range wanted[:taken] {
			<-kind
		}
		t.leave(visitor)
	}
	for _, kind := range wanted {
		select {
		case kind <- struct{}{}:
			taken++
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		}
	}
	return done, nil
}

func (t *turns) enter(visitor string) *turnsOfOne {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[visitor]
	if own == nil {
		own = &turnsOfOne{taken: make(chan struct{}, maxMakingOfOne)}
		t.of[visitor] = own
	}
	own.users++
	return own
}

func (t *turns) leave(visitor string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[visitor].users--; t.of[visitor].users == 0 {
		delete(t.of, visitor)
	}
}
