// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// A change of the status that gates nothing waits for others. How long, is what
// bounds the number of writes, so it depends on two things only:
//
//   - The window: it is as many times longer as there are more tasks, as is the
//     time that an API server takes to start or end all of them.
//   - The wave: changes that follow each other without a pause. Each write of a
//     wave waits as long again as the wave has lasted, within bounds. So writes
//     grow with the logarithm of the wave's length, and what the status says was
//     true in the later half of the wave.
//
// Once nothing more is to be expected of a wave, because no task is pending any
// more, its end is written without waiting.
const (
	// fewTasks is how many tasks make a wave of changes worth waiting for, even
	// if something waits for them to be written.
	fewTasks = 50
	// tasksPerWindow is how many tasks one coalescing window is for; a larger
	// Framework has proportionally longer ones.
	tasksPerWindow = 200
	// pauseWindows is how many windows without a change end a wave.
	pauseWindows = 4
	// maxWindows is how many windows a change may wait, and maxGatingWindows how
	// many if actions wait for it to be written.
	maxWindows, maxGatingWindows = 16, 4
	// busyWindows is how many windows a status may wait while actions that will
	// change it are under way.
	busyWindows = 10
)

// never is the wait for a write that is not needed.
const never time.Duration = -1

// writeIn is how long the write of the status may wait: not at all, never, or a
// while in which other changes may join it.
func (c *Controller) writeIn(rec *record, plan lifecycle.Plan) time.Duration {
	now := c.clock.Now()
	if plan.Persist == lifecycle.PersistNone {
		rec.dirtySince = time.Time{}
		return never
	}
	window := c.coalesceWindow(rec.tasks())
	if rec.dirtySince.IsZero() {
		rec.dirtySince = now
		if now.Sub(rec.lastWrite) > pauseWindows*window {
			rec.waveSince = now
		}
	}
	grown := max(window, rec.lastWrite.Sub(rec.waveSince))
	var at time.Time
	switch {
	case plan.Persist == lifecycle.PersistNow:
		return 0
	case plan.Persist == lifecycle.PersistSoon && rec.tasks() < fewTasks:
		return 0
	case plan.Persist == lifecycle.PersistSoon:
		at = rec.lastWrite.Add(min(grown, maxGatingWindows*window))
	case len(plan.Actions) > 0:
		// Every action will change the status again.
		at = rec.dirtySince.Add(busyWindows * window)
	case rec.settled():
		at = rec.lastWrite.Add(c.window)
	default:
		at = later(rec.dirtySince.Add(window), rec.lastWrite.Add(min(grown, maxWindows*window)))
	}
	return max(0, at.Sub(now))
}

// coalesceWindow is how long a change of status that gates nothing may wait at
// the beginning of a wave.
func (c *Controller) coalesceWindow(tasks int) time.Duration {
	return c.window * time.Duration(max(tasksPerWindow, tasks)) / tasksPerWindow
}

// settled says whether the status that waits to be written is the first in which
// no task is pending.
func (r *record) settled() bool {
	return r.persisted != nil && r.persisted.Tasks != nil && r.persisted.Tasks.Pending > 0 && r.status.Tasks.Pending == 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
