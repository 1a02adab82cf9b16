// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import "sync"

// Limits bound the syncs in flight: syncs that are begun and not ended.
type Limits struct {
	// Namespace is how many syncs of one namespace may be in flight at the same time. All is how many of all namespaces
	// may be; each namespace may have one more.
	Namespace, All int
}

// flights records the syncs in flight. A sync beyond the limit of its namespace, or beyond the limit of all, is parked
// until another sync has ended.
type flights struct {
	limits Limits
	mu     sync.Mutex
	// inFlight counts by namespace, and all counts all syncs.
	inFlight map[string]int
	all      int
	parked   map[string]map[Key]bool
}

func newFlights(limits Limits) *flights {
	return &flights{limits: limits, inFlight: map[string]int{}, parked: map[string]map[Key]bool{}}
}

// begin reports whether a sync may begin. If not, the object is parked.
func (f *flights) begin(key Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.inFlight[key.Namespace]
	if own > 0 && (own >= f.limits.Namespace || f.all >= f.limits.All) {
		if f.parked[key.Namespace] == nil {
			f.parked[key.Namespace] = map[Key]bool{}
		}
		f.parked[key.Namespace][key] = true
		return false
	}
	f.inFlight[key.Namespace]++
	f.all++
	return true
}

// end records that a sync has ended. end returns parked objects that may be tried again, one of each namespace; some
// may be parked again.
func (f *flights) end(key Key) (resumed []Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasFull := f.all >= f.limits.All
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

// of returns how many syncs of a namespace are in flight.
func (f *flights) of(namespace string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFlight[namespace]
}
