// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

const (
	// writerWindow is how soon another program has to change a phase again for the group to be
	// left to it, and writerPause is for how long it is.
	writerWindow, writerPause = time.Minute, 10 * time.Minute
)

// phaseWriter is what is known of another program that writes the phase of a group of another dialect,
// as this scheduler does. Both would write it for ever, and wake whoever has made the group each
// time. What was in the phase before this scheduler's first write does not count.
type phaseWriter struct {
	// ours says that the phase is as this scheduler has written it, and foreign that another
	// program has changed it since.
	ours, foreign bool
	// changed is when one did so last.
	changed time.Time
	// until is until when the status is left to it.
	until time.Time
}

// see learns of a group, new or changed.
func (r *phaseWriter) see(group *dialect.Group, now time.Time) {
	switch {
	case group.PhaseBy == dialect.Writer:
		r.ours, r.foreign = true, false
	case r.ours: // nobody has written it if it was left out when the object was replaced
		r.ours, r.foreign = false, true
		if now.Sub(r.changed) < writerWindow {
			r.until = now.Add(writerPause)
		}
		r.changed = now
	}
}
