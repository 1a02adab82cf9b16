// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// decideGang decides whether the attempt is a gang, if that is not decided yet: for an attempt that begins, or that an
// older version has created. The decision holds until the attempt ends, even if the spec changes: Pods that were
// created without a PodGroup can't become members, and retried Pods of a gang could not be placed without their
// PodGroup.
func (d *decision) decideGang() (goOn bool) {
	attempt := &d.next.AttemptStatus
	if attempt.Gang != nil {
		return true
	}
	switch {
	case d.next.State == frameworkv1.FrameworkAttemptCompleted:
	case d.next.State == frameworkv1.FrameworkAttemptCreationPending && !d.mayBegin():
	case d.PodGroup != nil || attempt.PodGroup != nil:
		attempt.Gang = d.gangOfPodGroup()
	case d.anyPodRecorded():
		attempt.Gang = &frameworkv1.AttemptGangStatus{}
	default:
		attempt.Gang = d.gangOfSpec()
	}
	return true
}

// mayBegin reports whether the user lets an attempt begin, and Kueue does.
func (d *decision) mayBegin() bool {
	return d.Framework.Spec.ExecutionType != frameworkv1.ExecutionCreate && !d.stopRequested() && !d.isHeld()
}

// gangOfSpec returns the gang of an attempt that starts with the present spec.
func (d *decision) gangOfSpec() *frameworkv1.AttemptGangStatus {
	spec := &d.Framework.Spec
	if spec.Gang == nil {
		return &frameworkv1.AttemptGangStatus{Enabled: podgroup.IsGang(spec, d.Options.GangSchedulerName)}
	}
	return &frameworkv1.AttemptGangStatus{
		Enabled:           true,
		SchedulerName:     d.Options.GangSchedulerName,
		PriorityClassName: spec.Gang.PriorityClassName,
	}
}

// gangOfPodGroup returns what an attempt that has a PodGroup has to be.
func (d *decision) gangOfPodGroup() *frameworkv1.AttemptGangStatus {
	gang := d.gangOfSpec()
	if !gang.Enabled {
		gang = &frameworkv1.AttemptGangStatus{Enabled: true, SchedulerName: d.Options.GangSchedulerName}
	}
	if d.PodGroup != nil {
		gang.PriorityClassName = d.PodGroup.Spec.PriorityClassName
	}
	return gang
}

// anyPodRecorded reports whether a task of the attempt has, or had, a Pod.
func (d *decision) anyPodRecorded() bool {
	recorded := false
	d.eachTask(func(t cursor) {
		task := t.status()
		recorded = recorded || task.AttemptStatus.PodUID != nil || task.RetryPolicyStatus.TotalRetriedCount > 0
	})
	return recorded
}

// gangPersisted reports whether the decision about the attempt's gang is persisted. Until then the controller creates
// no object of the attempt.
func (d *decision) gangPersisted() bool {
	return d.next.AttemptStatus.Gang == nil || d.Persisted.AttemptStatus.Gang != nil
}

// isGang reports whether the attempt is a gang. For a finished attempt of an older version, it reports whether there
// was a PodGroup.
func (d *decision) isGang() bool {
	attempt := &d.next.AttemptStatus
	if attempt.Gang == nil {
		return attempt.PodGroup != nil
	}
	return attempt.Gang.Enabled
}

// completePodGroup sets the status's copy of the PodGroup to Completed, because all Pods are gone. completePodGroup
// does so only if the PodGroup has run.
func (d *decision) completePodGroup() {
	attempt := &d.next.AttemptStatus
	if attempt.PodGroup == nil || attempt.PodGroup.Phase != schedulingv1alpha1.PodGroupRunning && attempt.PodGroup.Phase != schedulingv1alpha1.PodGroupUnknown {
		return // one that never ran says why it waited
	}
	over := *attempt.PodGroup
	over.Phase, over.Running = schedulingv1alpha1.PodGroupCompleted, 0
	attempt.PodGroup = &over
}

// observePodGroup copies the needed fields of the attempt's PodGroup into the status, until the attempt's end is
// decided, so that the last copy shows why the attempt waited. The times from which timeouts count are kept: neither a
// restart of the controller nor a new PodGroup prolongs a timeout. They are taken by the controller's own clock,
// because the API server's clock may be an hour ahead or behind.
func (d *decision) observePodGroup() (goOn bool) {
	attempt := &d.next.AttemptStatus
	group := d.PodGroup
	if !d.isGang() || group == nil || !d.hasInstance() || attempt.CompletionStatus != nil {
		return true
	}
	seen := &frameworkv1.AttemptPodGroupStatus{
		Name:      group.Name,
		UID:       group.UID,
		Phase:     group.Status.Phase,
		MinMember: group.Spec.MinMember,
		Scheduled: group.Status.Scheduled,
		Running:   group.Status.Running,
	}
	before := attempt.PodGroup
	if before == nil {
		before = &frameworkv1.AttemptPodGroupStatus{}
	}
	seen.CreationTime, seen.UnknownSince = before.CreationTime, before.UnknownSince
	if seen.CreationTime == nil {
		seen.CreationTime = d.timeNow()
	}
	scheduled := podgroup.Condition(group, schedulingv1alpha1.ConditionScheduled)
	seen.EverScheduled = before.EverScheduled ||
		scheduled != nil && scheduled.Status == metav1.ConditionTrue ||
		seen.Phase == schedulingv1alpha1.PodGroupRunning || seen.Phase == schedulingv1alpha1.PodGroupCompleted
	waits := podgroup.Condition(group, schedulingv1alpha1.ConditionUnschedulable)
	if waits != nil && waits.Status == metav1.ConditionTrue {
		seen.Unschedulable = &frameworkv1.AttemptUnschedulable{
			Reason: schedulingv1alpha1.CleanReason(waits.Reason), Message: waits.Message, Since: waits.LastTransitionTime,
		}
		seen.ExpectedStart = group.Status.ExpectedStart
	}
	attempt.PodGroup = seen
	return true
}

// followPlacement records that the gang was placed once enough Pods have nodes. followPlacement does not wait for the
// PodGroup to say so, because the watch of PodGroups may be behind.
func (d *decision) followPlacement() (goOn bool) {
	group := d.next.AttemptStatus.PodGroup
	if !d.isGang() || group == nil || group.EverScheduled || d.completing() {
		return true
	}
	if d.minimumHolds(cursor.isUp) {
		changed := *group
		changed.EverScheduled = true
		d.next.AttemptStatus.PodGroup = &changed
	}
	return true
}

// applyGangTimeouts completes the attempt if its gang has waited too long, to free its resources.
func (d *decision) applyGangTimeouts() (goOn bool) {
	gang, group := d.Framework.Spec.Gang, d.next.AttemptStatus.PodGroup
	if gang == nil || group == nil || d.completing() {
		return true
	}
	if timeout := seconds(gang.ScheduleTimeoutSeconds); timeout > 0 && !group.EverScheduled && group.CreationTime != nil {
		over, at := d.over(*group.CreationTime, timeout)
		d.WakeAt(at)
		if over {
			d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodePodGroupScheduleTimeout,
				fmt.Sprintf("PodGroup %s was not scheduled within %v%s", group.Name, timeout, because(group))))
			return true
		}
	}
	if timeout := seconds(gang.RecoveryTimeoutSeconds); timeout > 0 && d.waitsForMembers && group.UnknownSince != nil {
		over, at := d.over(*group.UnknownSince, timeout)
		d.WakeAt(at)
		if over {
			d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodePodGroupRecoveryTimeout,
				fmt.Sprintf("PodGroup %s has not recovered within %v%s", group.Name, timeout, because(group))))
		}
	}
	return true
}

// persistGangTimes has the status written at once if times have changed from which a timeout counts. A new controller
// that lacks these times would end a gang too late, or would end a gang that must not end. Without a timeout, the times
// may wait for the next write.
func (d *decision) persistGangTimes() (goOn bool) {
	gang, group := d.Framework.Spec.Gang, d.next.AttemptStatus.PodGroup
	if gang == nil || group == nil || gang.ScheduleTimeoutSeconds == nil && gang.RecoveryTimeoutSeconds == nil {
		return true
	}
	written := &frameworkv1.AttemptPodGroupStatus{}
	if d.Persisted.AttemptStatus.PodGroup != nil {
		written = d.Persisted.AttemptStatus.PodGroup
	}
	if !group.CreationTime.Equal(written.CreationTime) || group.EverScheduled != written.EverScheduled ||
		!group.UnknownSince.Equal(written.UnknownSince) {
		d.Persist(plan.PersistNow)
	}
	return true
}

func seconds(s *int32) time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(*s) * time.Second
}

func because(group *frameworkv1.AttemptPodGroupStatus) string {
	if group.Unschedulable == nil {
		return ""
	}
	return fmt.Sprintf(": %s: %s", group.Unschedulable.Reason, group.Unschedulable.Message)
}

// activeTasks counts, by role, the tasks that are in spec and not Completed.
func (d *decision) activeTasks() map[string]int32 {
	active := map[string]int32{}
	d.eachTask(func(t cursor) {
		if t.wanted() && t.status().State != frameworkv1.TaskCompleted {
			active[t.role.Name]++
		}
	})
	return active
}

// minimumHolds reports whether the tasks for which `counts` returns true are enough for the gang's minimums. Completed
// tasks are not counted; they have lowered the minimums already.
func (d *decision) minimumHolds(counts func(cursor) bool) bool {
	var tally podgroup.Tally
	d.eachTask(func(t cursor) {
		if t.wanted() && t.status().State != frameworkv1.TaskCompleted && counts(t) {
			tally.Add(t.role.Name, 1)
		}
	})
	spec, needed := podgroup.DesiredSpec(&d.Framework.Spec, d.activeTasks())
	return needed && podgroup.Holds(&spec, tally)
}

// desiredPodGroup returns the PodGroup as the attempt needs it now; nil if it needs none.
func (d *decision) desiredPodGroup() *schedulingv1alpha1.PodGroup {
	if !d.isGang() {
		return nil
	}
	spec, needed := podgroup.DesiredSpec(&d.Framework.Spec, d.activeTasks())
	if !needed {
		return nil
	}
	spec.PriorityClassName = d.next.AttemptStatus.Gang.PriorityClassName
	d.runtimesInForce().Set(&spec)
	return newPodGroup(d.Framework, &d.next.AttemptStatus, spec)
}
