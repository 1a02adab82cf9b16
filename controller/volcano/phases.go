// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// phaseExits returns the phases that may follow a phase. The constant of each phase documents what it means, and when
// it ends.
func phaseExits(from batchv1alpha1.JobPhase) []batchv1alpha1.JobPhase {
	const (
		pending     = batchv1alpha1.JobPending
		running     = batchv1alpha1.JobRunning
		restarting  = batchv1alpha1.JobRestarting
		aborting    = batchv1alpha1.JobAborting
		aborted     = batchv1alpha1.JobAborted
		terminating = batchv1alpha1.JobTerminating
		terminated  = batchv1alpha1.JobTerminated
		completing  = batchv1alpha1.JobCompleting
		completed   = batchv1alpha1.JobCompleted
		failed      = batchv1alpha1.JobFailed
	)
	switch from {
	case "":
		return []batchv1alpha1.JobPhase{pending}
	case pending:
		return []batchv1alpha1.JobPhase{running, restarting, aborting, terminating, completing}
	case running:
		return []batchv1alpha1.JobPhase{pending, completed, failed, restarting, aborting, terminating, completing}
	case restarting:
		return []batchv1alpha1.JobPhase{failed, pending, aborting, terminating, completing}
	case aborting:
		return []batchv1alpha1.JobPhase{aborted, restarting}
	case aborted:
		return []batchv1alpha1.JobPhase{restarting}
	case terminating:
		return []batchv1alpha1.JobPhase{terminated}
	case completing:
		return []batchv1alpha1.JobPhase{completed}
	default:
		return nil
	}
}

// isFinal reports whether the Job is finished: no phase follows.
func isFinal(phase batchv1alpha1.JobPhase) bool {
	return phase == batchv1alpha1.JobCompleted || phase == batchv1alpha1.JobFailed || phase == batchv1alpha1.JobTerminated
}

// IsFinal reports whether a Job has ended for good. The status may be nil.
func IsFinal(status *batchv1alpha1.JobStatus) bool {
	return status != nil && isFinal(status.State.Phase)
}

// isKnown reports whether there is such a phase.
func isKnown(phase batchv1alpha1.JobPhase) bool {
	return isFinal(phase) || len(phaseExits(phase)) > 0
}

// hasPods reports whether Pods are made in a phase.
func hasPods(phase batchv1alpha1.JobPhase) bool {
	return phase == batchv1alpha1.JobPending || phase == batchv1alpha1.JobRunning
}

// isOpen reports whether events and Commands may change a phase as policies say.
func isOpen(phase batchv1alpha1.JobPhase) bool {
	return hasPods(phase) || phase == batchv1alpha1.JobRestarting
}

// isOver reports whether the Job has ended, or is stopped until it is resumed. In either case its objects other than
// Pods may be deleted.
func isOver(phase batchv1alpha1.JobPhase) bool {
	return isFinal(phase) || phase == batchv1alpha1.JobAborted
}

// reaction is what an action does in a phase.
type reaction int

const (
	// ignores: nothing.
	ignores reaction = iota
	// changesPhase: the phase changes.
	changesPhase
	// marksTarget means that the current restart also restarts the Pods of the target.
	marksTarget
)

// reactionTo returns what an action does in a phase.
func reactionTo(phase batchv1alpha1.JobPhase, action busv1alpha1.Action) reaction {
	switch action {
	case busv1alpha1.ActionAbortJob, busv1alpha1.ActionTerminateJob, busv1alpha1.ActionCompleteJob:
		if isOpen(phase) {
			return changesPhase
		}
	case busv1alpha1.ActionRestartJob:
		if hasPods(phase) {
			return changesPhase
		}
	case busv1alpha1.ActionRestartTask, busv1alpha1.ActionRestartPod, busv1alpha1.ActionRestartPartition:
		if hasPods(phase) {
			return changesPhase
		}
		if phase == batchv1alpha1.JobRestarting {
			return marksTarget
		}
	case busv1alpha1.ActionResumeJob:
		if phase == batchv1alpha1.JobAborting || phase == batchv1alpha1.JobAborted {
			return changesPhase
		}
	}
	return ignores
}

// enter changes the phase and ends the round, so that the new phase is written before anything else happens.
func (d *decision) enter(to batchv1alpha1.JobPhase, reason, message string) {
	from := d.next.State.Phase
	if !slices.Contains(phaseExits(from), to) {
		d.Fail(fmt.Errorf("phase %q can't become %q", from, to))
		return
	}
	d.next.State = batchv1alpha1.JobState{
		Phase: to, Reason: cutReason(reason), Message: plan.CutMessage(message), LastTransitionTime: d.now,
	}
	conditions := slices.DeleteFunc(slices.Clone(d.next.Conditions), func(c batchv1alpha1.JobCondition) bool { return c.Status == to })
	d.next.Conditions = append(conditions, batchv1alpha1.JobCondition{Status: to, LastTransitionTime: d.now})
	if isOver(to) {
		d.next.RunningDuration = &metav1.Duration{Duration: max(0, d.now.Sub(d.Job.CreationTimestamp.Time))}
	}
	d.pauseUntilWritten()
}

// jobBecomesRestarting begins a restart: all Pods, or those of the target, are deleted and created again. Pods that
// have ended are deleted too, and no longer count, unless no try is left or the Job is resumed.
func (d *decision) jobBecomesRestarting(action busv1alpha1.Action, target target, reason, message string) {
	endedGo := action != busv1alpha1.ActionResumeJob && !d.endsAfter(d.next.RetryCount+1)
	d.enter(batchv1alpha1.JobRestarting, reason, message)
	if action != busv1alpha1.ActionResumeJob {
		d.next.RetryCount++ // Nothing has failed that a user resumes.
	}
	switch action {
	case busv1alpha1.ActionRestartJob, busv1alpha1.ActionResumeJob:
		d.next.Version++
	}
	d.noteMissing(target, endedGo)
	for _, t := range d.tasks {
		for index := range t.record.reach() {
			if !target.has(t, index) {
				continue
			}
			t.record.there.Set(index, false)
			t.record.dealtWith(index)
			if endedGo {
				t.record.forget(index)
			}
		}
	}
}

// jobStops enters the phase in which Pods that have not ended go.
func (d *decision) jobStops(action busv1alpha1.Action, reason, message string) {
	to := map[busv1alpha1.Action]batchv1alpha1.JobPhase{
		busv1alpha1.ActionAbortJob:     batchv1alpha1.JobAborting,
		busv1alpha1.ActionTerminateJob: batchv1alpha1.JobTerminating,
		busv1alpha1.ActionCompleteJob:  batchv1alpha1.JobCompleting,
	}[action]
	d.enter(to, reason, message)
	d.next.Version++
	d.noteMissing(wholeJob, false)
	d.expectNoPods()
}

// expectNoPods forgets which Pods are there: these Pods go. Such Pods cause no events.
func (d *decision) expectNoPods() {
	for _, t := range d.tasks {
		t.record.there.Clear()
		t.record.joined.Clear()
		t.record.forgetMoments()
	}
}

// endJoins forgets what has joined a restart that is over.
func (d *decision) endJoins() {
	for _, t := range d.tasks {
		t.record.joined.Clear()
	}
}

// followPhase takes the step that the Pods call for.
func (d *decision) followPhase() (goOn bool) {
	c := d.counts()
	switch d.next.State.Phase {
	case batchv1alpha1.JobPending:
		if !d.unclear && c.running+c.succeeded+c.failed >= d.minAvailable() {
			d.enter(batchv1alpha1.JobRunning, ReasonEnoughPods,
				fmt.Sprintf("%d of %d Pods run or have ended, %d are needed", c.running+c.succeeded+c.failed, d.replicas(), d.minAvailable()))
		}
	case batchv1alpha1.JobRunning:
		if d.unclear {
			d.enter(batchv1alpha1.JobPending, d.obstacle.reason, d.obstacle.message)
			break
		}
		d.followRunning(c)
	case batchv1alpha1.JobRestarting:
		d.followRestart(c)
	case batchv1alpha1.JobAborting:
		d.followStop(c, batchv1alpha1.JobAborted)
	case batchv1alpha1.JobTerminating:
		d.followStop(c, batchv1alpha1.JobTerminated)
	case batchv1alpha1.JobCompleting:
		d.followStop(c, batchv1alpha1.JobCompleted)
	}
	return !d.pause
}

// isLastRestart reports whether the restart under way is the last that maxRetry allows.
func (d *decision) isLastRestart() bool { return d.endsAfter(d.next.RetryCount) }

// endsAfter reports whether the Job ends after so many restarts. endsAfter returns false while the spec is invalid or
// was changed, because maxRetry can't be relied on then.
func (d *decision) endsAfter(restarts int32) bool {
	return d.invalid == "" && d.recordedHash() == d.hash && restarts >= d.spec.MaxRetry
}

// followRestart ends a restart if there were too many, or when enough of the old Pods are gone. By then all Pods that
// the restart deletes have the annotation KeyMark.
func (d *decision) followRestart(c counts) {
	switch {
	case d.isLastRestart():
		d.enter(batchv1alpha1.JobFailed, ReasonMaxRetry,
			fmt.Sprintf("The Job was restarted %d times, maxRetry is %d", d.next.RetryCount, d.spec.MaxRetry))
		d.noteMissing(wholeJob, false)
		d.expectNoPods()
		d.followRecords()
	case len(d.unmarkedTargets()) > 0:
		// The Pods get their marks first.
	case d.areMissing() || len(d.confirming) > 0:
		// Pods that are out of sight are looked for first: their loss may be an event that joins.
	case d.clock.Before(d.nextRun()):
		d.WakeAt(d.nextRun())
	case d.replicas()-c.terminating >= min(d.minAvailable(), d.replicas()):
		d.enter(batchv1alpha1.JobPending, ReasonRestarted, "Pods are made again")
		d.endJoins()
		d.followRecords()
	}
}

// followStop ends a stop once no Pod is left that has not ended.
func (d *decision) followStop(c counts, to batchv1alpha1.JobPhase) {
	if c.left() > 0 || d.areMissing() {
		return
	}
	state := d.next.State
	d.enter(to, state.Reason, state.Message)
}

// pauseUntilWritten ends the round: nothing more is decided, and nothing is done,
// before the status is written.
func (d *decision) pauseUntilWritten() {
	d.Persist(plan.PersistNow)
	d.pause = true
}
