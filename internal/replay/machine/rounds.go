// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"
)

// roundEvery is how long a request takes at most.
const roundEvery = time.Millisecond

// rounds carries out requests in rounds. A round consists of all requests since the last round, sorted by their
// content. So no request reaches the server during the scheduling cycle that made it, and the order of requests does
// not depend on chance.
type rounds struct {
	mu sync.Mutex
	// at are the requests of each round that is to come, by its time.
	at map[time.Time][]*waiting
}

// waiting is a request that waits for its round.
type waiting struct {
	asks string
	// before is the previous request in the same round; nil for the first.
	before *waiting
	// done is closed when it was carried out.
	done chan struct{}
}

func newRounds() *rounds { return &rounds{at: make(map[time.Time][]*waiting)} }

// sender returns what sends requests, in rounds, by another sender.
func (r *rounds) sender(next http.RoundTripper) http.RoundTripper {
	return &sender{rounds: r, next: next}
}

type sender struct {
	rounds *rounds
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(request *http.Request) (*http.Response, error) {
	own := &waiting{asks: request.Method + " " + request.URL.String(), done: make(chan struct{})}
	defer close(own.done)
	s.rounds.wait(own)
	if own.before != nil {
		<-own.before.done
	}
	return s.next.RoundTrip(request)
}

// wait waits until the round of a request begins. The first request to wake up sorts the requests of the round, and
// sets the field before of each; RoundTrip then waits for the request before.
func (r *rounds) wait(own *waiting) {
	at := time.Now().Truncate(roundEvery).Add(roundEvery)
	r.mu.Lock()
	r.at[at] = append(r.at[at], own)
	r.mu.Unlock()
	time.Sleep(time.Until(at))
	r.mu.Lock()
	defer r.mu.Unlock()
	round := r.at[at]
	delete(r.at, at)
	slices.SortStableFunc(round, func(a, b *waiting) int { return cmp.Compare(a.asks, b.asks) })
	for i := 1; i < len(round); i++ {
		round[i].before = round[i-1]
	}
}
