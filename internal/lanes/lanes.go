// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lanes bounds how many requests a server handles at the same time, so that unknown clients can't keep known
// clients out. Unknown clients share one lane; clients with credentials that were accepted before share the other.
package lanes

import (
	"context"
	"crypto/sha256"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// Lane has an item for each question that is under way.
type Lane chan struct{}

// Enter takes a place in the lane. If all places are taken, it waits for at most patience, or until ctx ends. Enter
// reports whether it got a place. If it did, the caller must call Leave.
func (l Lane) Enter(ctx context.Context, patience time.Duration) bool {
	select {
	case l <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

// Leave gives the place back.
func (l Lane) Leave() { <-l }

// Lanes are the two lanes, and which client uses which.
type Lanes struct {
	Strangers, Guests Lane
	// guests has the hashes of credentials that were let in.
	guests *cache.LRUExpireCache
}

// New returns lanes with so many places each, which remember at most so many known clients.
func New(places, guests int) *Lanes {
	return &Lanes{Strangers: make(Lane, places), Guests: make(Lane, places), guests: cache.NewLRUExpireCache(guests)}
}

// Of returns the lane for questions about credentials.
func (l *Lanes) Of(credentials string) Lane {
	if _, guest := l.guests.Get(sha256.Sum256([]byte(credentials))); guest {
		return l.Guests
	}
	return l.Strangers
}

// Welcome remembers for a while that credentials were let in.
func (l *Lanes) Welcome(credentials string, lasts time.Duration) {
	l.guests.Add(sha256.Sum256([]byte(credentials)), nil, lasts)
}
