// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"maps"
	"time"
)

// Sightings records when objects were seen, for the first or the last time, by the controller's own clock. The zero
// Sightings is empty.
type Sightings[ID comparable] struct {
	at map[ID]time.Time
}

// First records that an object is seen. Only the first time counts.
func (s *Sightings[ID]) First(id ID, now time.Time) {
	if _, ok := s.at[id]; !ok {
		s.Last(id, now)
	}
}

// Last records that an object is seen. The last time counts.
func (s *Sightings[ID]) Last(id ID, now time.Time) {
	if s.at == nil {
		s.at = map[ID]time.Time{}
	}
	s.at[id] = now
}

// At returns the times, by object. The caller does not change it.
func (s *Sightings[ID]) At() map[ID]time.Time { return s.at }

// Keep forgets the objects that are not to be kept.
func (s *Sightings[ID]) Keep(keep func(ID) bool) {
	maps.DeleteFunc(s.at, func(id ID, _ time.Time) bool { return !keep(id) })
}
