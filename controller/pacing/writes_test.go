// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

// base is the coalescing window of a small Framework.
const base = 100 * time.Millisecond

// TestWhenAStatusIsWritten has a row for each line of the table in the documentation of
// the package, and for each bound in it.
func TestWhenAStatusIsWritten(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	// Times are those since the last write.
	tests := map[string]struct {
		change Change
		// wave is how old the wave was at the last write, took the duration of that
		// write, and changed when the status began to differ.
		wave, took, changed time.Duration
		want                time.Duration
	}{
		"everything waits for it: at once":                    {change: Change{Gates: GatesEverything, Tasks: 10_000, Acting: true}, wave: 50 * s, changed: 10 * ms, want: 10 * ms},
		"a few tasks wait for it: at once":                    {change: Change{Gates: GatesTasks, Tasks: 49, Acting: true}, wave: 50 * s, changed: 10 * ms, want: 10 * ms},
		"tasks wait for it: a window after the last":          {change: Change{Gates: GatesTasks, Tasks: 50, Acting: true}, changed: 10 * ms, want: 100 * ms},
		"tasks wait for it in a wave: twice its age":          {change: Change{Gates: GatesTasks, Tasks: 50}, wave: 150 * ms, changed: 10 * ms, want: 300 * ms},
		"tasks wait for it in a long wave: 4 windows":         {change: Change{Gates: GatesTasks, Tasks: 50}, wave: 50 * s, changed: 10 * ms, want: 400 * ms},
		"2000 tasks wait for it in a long wave: 4 of theirs":  {change: Change{Gates: GatesTasks, Tasks: 2000}, wave: 50 * s, changed: 10 * ms, want: 4 * s},
		"actions are planned: 30 W after the change":          {change: Change{Tasks: 100, Acting: true, Settled: true}, wave: 50 * s, changed: 10 * ms, want: 3*s + 10*ms},
		"actions of 1000 tasks are planned: 12 windows":       {change: Change{Tasks: 1000, Acting: true}, changed: 10 * ms, want: 6*s + 10*ms},
		"actions are planned at a slow server: 100 writes":    {change: Change{Tasks: 100, Acting: true}, took: 50 * ms, changed: 10 * ms, want: 5*s + 10*ms},
		"actions are planned at the slowest server: 100 W":    {change: Change{Tasks: 100, Acting: true}, took: s, changed: 10 * ms, want: 10*s + 10*ms},
		"it completes a start: W after the last write":        {change: Change{Tasks: 10_000, Settled: true, Starting: true}, wave: 50 * s, changed: 10 * ms, want: 100 * ms},
		"tasks are about to start: 30 W after the change":     {change: Change{Tasks: 100, Starting: true}, changed: 10 * ms, want: 3*s + 10*ms},
		"10,000 tasks start: 1 window after the change":       {change: Change{Tasks: 10_000, Starting: true}, changed: 10 * ms, want: 5*s + 10*ms},
		"10,000 tasks start at a slow server: 10 windows":     {change: Change{Tasks: 10_000, Starting: true}, took: 10 * s, changed: 10 * ms, want: 50*s + 10*ms},
		"tasks are about to start in a wave: twice its age":   {change: Change{Tasks: 100, Starting: true}, wave: 4 * s, changed: 10 * ms, want: 8 * s},
		"otherwise, after a pause: a window after the change": {change: Change{Tasks: 100}, changed: 30 * s, want: 30*s + 100*ms},
		"otherwise, in a wave: twice its age after the last":  {change: Change{Tasks: 100}, wave: 2 * s, changed: 10 * ms, want: 4 * s},
		"otherwise, in a long wave: 100 W":                    {change: Change{Tasks: 100}, wave: 50 * s, changed: 10 * ms, want: 10 * s},
		"10,000 tasks, in a long wave: 20 windows":            {change: Change{Tasks: 10_000}, wave: time.Hour, changed: 10 * ms, want: 100 * s},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			last := time.Unix(1000, 0)
			w := Writes{wave: last.Add(-tc.wave), last: last, took: tc.took, changed: last.Add(tc.changed)}
			if got := w.Due(tc.change, base).Sub(last); got != tc.want {
				t.Errorf("it is written %v after the last write, want %v", got, tc.want)
			}
		})
	}
}

// TestAFirstStatusIsWrittenAtOnce: nothing was written before that it could wait for.
func TestAFirstStatusIsWrittenAtOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	var w Writes
	w.Changed(now, 1000, base)
	if due := w.Due(Change{Gates: GatesEverything, Tasks: 1000}, base); due.After(now) {
		t.Errorf("it is written in %v", due.Sub(now))
	}
}

// TestWritesOfAWaveGrowWithTheLogarithmOfItsLength writes a status that never rests.
func TestWritesOfAWaveGrowWithTheLogarithmOfItsLength(t *testing.T) {
	begin := time.Unix(1000, 0)
	writesIn := func(span time.Duration) int {
		var w Writes
		count := 0
		for now := begin; now.Before(begin.Add(span)); now = now.Add(10 * time.Millisecond) {
			w.Changed(now, 1, base)
			if !w.Due(Change{Tasks: 1}, base).After(now) {
				w.Written(now, now)
				count++
			}
		}
		return count
	}
	for _, span := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		// Each write comes when the wave has three times its age at the one before.
		if few, more := writesIn(span), writesIn(3*span); more < few || more > few+2 {
			t.Errorf("%d writes in %v and %d in three times as long", few, span, more)
		}
	}
}

// TestAPauseEndsAWave: the first change after it is written as soon as the very first.
func TestAPauseEndsAWave(t *testing.T) {
	begin := time.Unix(1000, 0)
	last := begin.Add(time.Second)
	for name, tc := range map[string]struct{ pause, want time.Duration }{
		"after a short pause the wave goes on": {4 * base, 2*time.Second - 4*base},
		"after a longer one it is over":        {4*base + 1, base},
	} {
		t.Run(name, func(t *testing.T) {
			var w Writes
			w.Changed(begin, 1, base)
			w.Written(last, last)
			changed := last.Add(tc.pause)
			w.Changed(changed, 1, base)
			if got := w.Due(Change{Tasks: 1}, base).Sub(changed); got != tc.want {
				t.Errorf("the change waits %v, want %v", got, tc.want)
			}
		})
	}
}

// TestAChangeThatIsTakenBackWaitsForNothing, and the next one waits from its own time on.
func TestAChangeThatIsTakenBackWaitsForNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	var w Writes
	w.Changed(now, 1, base)
	w.Unchanged()
	later := now.Add(time.Minute)
	w.Changed(later, 1, base)
	if got := w.Due(Change{Tasks: 1}, base).Sub(later); got != base {
		t.Errorf("the second change waits %v, want %v", got, base)
	}
}
