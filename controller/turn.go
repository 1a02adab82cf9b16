// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// turn is a sync on a worker, which goes on to other Frameworks after
// pacing.Patience. The sync goes on too: it is in flight until its requests are
// answered, and until then there is no other of the same Framework.
type turn struct {
	begun time.Time
	// requests is roughly how many requests the sync has begun: pages of lists, retries of
	// writes and second GETs are left out.
	requests int
	// flights is how many syncs of its namespace are in flight.
	flights func() int
}

// flights are the syncs in flight. There are bounds on their number: a Framework
// beyond them is parked until one of its namespace, or any, has landed.
type flights struct {
	mu sync.Mutex
	// inFlight counts by namespace, and all counts all of them.
	inFlight map[string]int
	all      int
	parked   map[string]map[cache.ObjectName]bool
}

func newFlights() *flights {
	return &flights{inFlight: map[string]int{}, parked: map[string]map[cache.ObjectName]bool{}}
}

// begin says whether a sync of a Framework may begin. If not, the Framework is parked.
func (f *flights) begin(key cache.ObjectName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.inFlight[key.Namespace]
	if own > 0 && (own >= pacing.MaxFlights || f.all >= pacing.MaxFlightsInAll) {
		if f.parked[key.Namespace] == nil {
			f.parked[key.Namespace] = map[cache.ObjectName]bool{}
		}
		f.parked[key.Namespace][key] = true
		return false
	}
	f.inFlight[key.Namespace]++
	f.all++
	return true
}

// end tells that a sync has ended. It returns the Frameworks that may begin instead:
// one of each namespace in which one is parked, of which some may be parked again.
func (f *flights) end(key cache.ObjectName) (resumed []cache.ObjectName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasFull := f.all >= pacing.MaxFlightsInAll
	f.all--
	if f.inFlight[key.Namespace]--; f.inFlight[key.Namespace] == 0 {
		delete(f.inFlight, key.Namespace)
	}
	for namespace, parked := range f.parked {
		if namespace != key.Namespace && !wasFull {
			continue
		}
		for next := range parked {
			delete(parked, next)
			resumed = append(resumed, next)
			break
		}
		if len(parked) == 0 {
			delete(f.parked, namespace)
		}
	}
	return resumed
}

// of is how many syncs of a namespace are in flight.
func (f *flights) of(namespace string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFlight[namespace]
}
