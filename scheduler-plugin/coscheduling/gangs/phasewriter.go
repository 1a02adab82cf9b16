// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

const (
	// writerWindow and writerPause: if another program changes the phase twice within writerWindow, this scheduler
	// leaves the status to that program for writerPause.
	writerWindow, writerPause = time.Minute, 10 * time.Minute
)

// phaseWriter detects that another program writes the phase of a group of another API, as this scheduler does.
// Otherwise the two would overwrite each other for ever, and each write would wake the controller of the group's owner.
// A phase that was written before this scheduler's first write does not count.
type phaseWriter struct {
	// ours reports that this scheduler wrote the present phase. foreign reports that another program has changed the
	// phase since this scheduler wrote it.
	ours, foreign bool
	// changed is when another program last changed the phase.
	changed time.Time
	// until is until when this scheduler does not write the status.
	until time.Time
}

// see records a new or changed group.
func (r *phaseWriter) see(group *dialect.Group, now time.Time) {
	switch {
	case group.PhaseBy == dialect.Writer:
		r.ours, r.foreign = true, false
	case r.ours: // also if the object was replaced, without a phase
		r.ours, r.foreign = false, true
		if now.Sub(r.changed) < writerWindow {
			r.until = now.Add(writerPause)
		}
		r.changed = now
	}
}
