// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// Gate is what waits for a change of the status to be written.
type Gate int

// Gates, from the least urgent on.
const (
	GatesNothing Gate = iota
	GatesTasks
	GatesEverything
)

// Change describes a status that differs from the stored one.
type Change struct {
	// Gates is what waits for the write.
	Gates Gate
	// Tasks is the number of tasks.
	Tasks int
	// Acting means that the controller has planned actions that will change the status again. Some of them may be
	// waiting for a retry.
	Acting bool
	// Settled reports that the status is the first to show that all tasks run, or that all have addresses: clients wait
	// for that.
	Settled bool
	// Starting says that tasks are about to start.
	Starting bool
}

// Writes records the past writes of one status. The zero Writes belongs to a status that was never written.
type Writes struct {
	// changed is when the status began to differ from the stored one; zero if both are equal.
	changed time.Time
	// wave is when the present wave of changes began.
	wave time.Time
	// last is when the status was last written. took is how long the write took.
	last time.Time
	took time.Duration
}

// Unchanged records that the status is the stored one.
func (w *Writes) Unchanged() { w.changed = time.Time{} }

// Changed records that the status differs from the stored one, perhaps for longer.
func (w *Writes) Changed(now time.Time, tasks int, base time.Duration) {
	if !w.changed.IsZero() {
		return
	}
	w.changed = now
	if now.Sub(w.last) > pauseWindows*window(tasks, base) {
		w.wave = now
	}
}

// Written records that the status was written.
func (w *Writes) Written(begun, now time.Time) {
	w.changed = time.Time{}
	w.last = now
	w.took = now.Sub(begun)
}

// Due returns when a change has to be written; a time that has passed means at once. base is the configured coalescing
// window.
func (w *Writes) Due(change Change, base time.Duration) time.Time {
	window := window(change.Tasks, base)
	wait := max(window, waveGrowth*w.last.Sub(w.wave))
	next := w.last.Add(min(wait, max(maxWindows*base, maxOwnWindows*window)))
	switch {
	case change.Gates == GatesEverything:
		return w.changed
	case change.Gates == GatesTasks && change.Tasks < fewTasks:
		return w.changed
	case change.Gates == GatesTasks:
		return w.last.Add(min(wait, maxGatingWindows*window))
	case change.Acting:
		return w.changed.Add(max(busyWindows*window, w.starting(window, base)))
	case change.Settled:
		return w.last.Add(base)
	case change.Starting:
		return times.Later(w.changed.Add(max(window, w.starting(window, base))), next)
	default:
		return times.Later(w.changed.Add(window), next)
	}
}

// starting returns how long the first change waits while tasks are about to start.
func (w *Writes) starting(window, base time.Duration) time.Duration {
	most := max(maxWindows*base, maxOwnWindows*window/2)
	return min(max(startingWindows*base, startingWrites*w.took), most)
}

// window returns how long a change waits at the beginning of a wave if no action waits for it.
func window(tasks int, base time.Duration) time.Duration {
	return base * time.Duration(max(tasksPerWindow, tasks)) / tasksPerWindow
}
