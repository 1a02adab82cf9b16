// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

func TestASyncBeginsNothingNewOnceItsTurnIsOver(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		elapsed  time.Duration
		requests int
		over     bool
	}{
		"just begun":                        {0, 0, false},
		"many requests in little time":      {99 * ms, 10_000, false},
		"many requests in a turn":           {100 * ms, 50, true},
		"few requests in a turn":            {100 * ms, 49, false},
		"few requests, for almost too long": {1999 * ms, 49, false},
		"few requests, for too long":        {2000 * ms, 1, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			begun := time.Unix(1000, 0)
			if got := Over(begun, begun.Add(tc.elapsed), tc.requests); got != tc.over {
				t.Errorf("over: %t, want %t", got, tc.over)
			}
		})
	}
}

func TestALargeFrameworkIsDecidedAboutOnceASecond(t *testing.T) {
	now := time.Unix(1000, 0)
	var s Syncs
	if due := s.Due(10_000); due.After(now) {
		t.Errorf("the first sync is due in %v", due.Sub(now))
	}
	s.Decided(now)
	s.Ended(now, false)
	for tasks, want := range map[int]time.Duration{0: 0, 10: time.Millisecond, 10_000: time.Second} {
		if got := s.Due(tasks).Sub(now); got != want {
			t.Errorf("the next sync of %d tasks is due in %v, want %v", tasks, got, want)
		}
		if want > 0 && !s.Fresh(now.Add(want-1), tasks) {
			t.Errorf("the plan of %d tasks is too old just before %v", tasks, want)
		}
		if s.Fresh(now.Add(want), tasks) {
			t.Errorf("the plan of %d tasks is still carried on with after %v", tasks, want)
		}
	}
}

// TestAnUnfinishedSyncGoesOnAtOnce, however large the Framework is.
func TestAnUnfinishedSyncGoesOnAtOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	var s Syncs
	s.Ended(now, true)
	if due := s.Due(10_000); due.After(now) {
		t.Errorf("the next sync is due in %v", due.Sub(now))
	}
	s.Ended(now, false)
	if due := s.Due(10_000); !due.After(now) {
		t.Error("a finished sync is followed by the next at once")
	}
}

func TestAFrameworkThatNeverRestsIsRestless(t *testing.T) {
	const tasks = 100
	var s Syncs
	for range 500 + tasks {
		if s.Restless(tasks) {
			t.Fatalf("restless after %d rounds", s.Rounds())
		}
		s.Round()
	}
	if !s.Restless(tasks) {
		t.Errorf("not restless after %d rounds", s.Rounds())
	}
	s.Rested()
	if s.Restless(tasks) || s.Rounds() != 0 {
		t.Errorf("after a rest %d rounds count", s.Rounds())
	}
}
