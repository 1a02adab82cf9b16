// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// A change of the status that gates nothing waits for others. How long, is what
// bounds the number of writes, so it depends on two things:
//
//   - The window: it is as many times longer as there are more tasks, as is the
//     time that an API server takes to start or end all of them.
//   - The wave: changes that follow each other without a pause. Each write of a
//     wave waits twice as long as the wave has lasted, within bounds. So writes
//     grow with the logarithm of the wave's length only.
//
// While tasks are about to start, nothing is worth a quick write: soon all run, or
// have their addresses, and that is written without waiting.
const (
	// fewTasks is how many tasks make a wave of changes worth waiting for, even
	// if something waits for them to be written.
	fewTasks = 50
	// tasksPerWindow is how many tasks one coalescing window is for; a larger
	// Framework has proportionally longer ones.
	tasksPerWindow = 200
	// pauseWindows is how many windows without a change end a wave.
	pauseWindows = 4
	// growth is how many times longer than the wave has lasted its next write
	// waits.
	growth = 2
	// maxGatingWindows is how many windows a change may wait at most if actions
	// wait for it to be written.
	maxGatingWindows = 4
	// busyWindows is how many windows a status may wait while actions that will
	// change it are under way.
	busyWindows = 12
	// startingWindows and maxWindows are windows of a small Framework, however
	// large it is: 3 s and 10 s by default. So long wait the first change while
	// tasks are about to start, and any change at most.
	startingWindows, maxWindows = 30, 100
	// maxOwnWindows is how many of its own windows a change may wait at most where
	// that is longer: for 10 ms a task by default, about as long as an API server
	// takes to start one. So larger Frameworks need no more writes. The first change
	// of a start, which a crash would lose, waits half as long.
	maxOwnWindows = 20
	// startingWrites is how many times longer than the last write took the first
	// change waits while tasks are about to start, if that is longer: an API server
	// that is slow to write is busy starting them.
	startingWrites = 100
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
	grown := max(window, growth*rec.lastWrite.Sub(rec.waveSince))
	longest := max(maxWindows*c.window, maxOwnWindows*window)
	next := rec.lastWrite.Add(min(grown, longest))
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
		at = rec.dirtySince.Add(max(busyWindows*window, c.startingWait(rec, window)))
	case rec.settled():
		at = rec.lastWrite.Add(c.window)
	case rec.status.Tasks.Pending > 0:
		at = later(rec.dirtySince.Add(max(window, c.startingWait(rec, window))), next)
	default:
		at = later(rec.dirtySince.Add(window), next)
	}
	return max(0, at.Sub(now))
}

// coalesceWindow is how long a change of status that gates nothing may wait at
// the beginning of a wave.
func (c *Controller) coalesceWindow(tasks int) time.Duration {
	return c.window * time.Duration(max(tasksPerWindow, tasks)) / tasksPerWindow
}

// startingWait is how long the first change waits while tasks are about to start.
func (c *Controller) startingWait(rec *record, window time.Duration) time.Duration {
	most := max(maxWindows*c.window, maxOwnWindows*window/2)
	return min(max(startingWindows*c.window, startingWrites*rec.writeTook), most)
}

// settled says whether the status that waits to be written is the first that
// shows all tasks running, or all Pods with their addresses: FrameworkBarrier
// waits for these, and lets no task run before.
func (r *record) settled() bool {
	if r.persisted == nil || r.persisted.Tasks == nil {
		return false
	}
	return r.status.Tasks.Pending == 0 && r.persisted.Tasks.Pending > 0 ||
		located(r.status) && !located(r.persisted)
}

// located says whether the address of each task is known, unless it has ended.
func located(status *frameworkv1.FrameworkStatus) bool {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			ip := task.AttemptStatus.PodIP
			if task.AttemptStatus.CompletionStatus == nil && (ip == nil || *ip == "") {
				return false
			}
		}
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
