// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"fmt"
	"time"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// decider decides on one Framework.
type decider struct {
	core    *Core
	encoder statuscodec.Encoder
	// deletionLogged says that the history has the Framework as one to be deleted.
	deletionLogged bool
	// takenOver is the Snapshot's; nil before the first decision.
	takenOver *lifecycle.TakenOver
}

// Decide has package lifecycle decide.
func (d *decider) Decide(view *view, now time.Time, entropy plan.Entropy) (plan.Plan[frameworkv1.FrameworkStatus], error) {
	snapshot, err := d.core.snapshot(view)
	if err != nil {
		return plan.Plan[frameworkv1.FrameworkStatus]{}, fmt.Errorf("reading the cache: %w", err)
	}
	if d.takenOver == nil {
		found := lifecycle.TakeOver(view.Persisted, now)
		d.takenOver = &found
	}
	snapshot.TakenOver = *d.takenOver
	decided := lifecycle.Decide(snapshot, now, entropy)
	next := decided.Plan
	next.Starting = next.Status != nil && next.Status.Tasks != nil && next.Status.Tasks.Pending > 0
	next.Settled = settled(view.Persisted, next.Status)
	next.Over = isOver(snapshot, decided)
	if len(decided.History) > 0 {
		next.Before = func() { d.logHistory(decided.History, now) }
	}
	return next, nil
}

// isOver reports whether a Framework is Completed and only waits for the end of its retention, so that what is in
// memory of it may be dropped. isOver returns false if the status had times in the future when this controller first
// read it: these times are replaced by the time of that reading, which is only in memory.
func isOver(snapshot lifecycle.Snapshot, decided lifecycle.Plan) bool {
	return decided.Status != nil && decided.Status.State == frameworkv1.FrameworkCompleted &&
		len(decided.Actions) == 0 && len(snapshot.Pods) == 0 && snapshot.ConfigMap == nil && !snapshot.TakenOver.AnyToCome()
}

// settled reports whether the status to write is the first in which all tasks run, or all Pods have addresses.
// FrameworkBarrier waits for that status before it lets any task run.
func settled(persisted, status *frameworkv1.FrameworkStatus) bool {
	if persisted == nil || persisted.Tasks == nil {
		return false
	}
	return status.Tasks.Pending == 0 && persisted.Tasks.Pending > 0 ||
		located(status) && !located(persisted)
}

// located reports whether the address of each unfinished task is known.
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
