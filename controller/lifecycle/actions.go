// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// foldOutcomes adds the results of the last round's actions to the status. Only few results must be written before
// anything else happens: after a crash, the controller finds most created objects again and adopts them.
func (d *decision) foldOutcomes() (goOn bool) {
	tasks := d.tasksOf(d.Outcomes)
	for _, outcome := range d.Outcomes {
		action := outcome.Action
		switch {
		case action.Verb == plan.List:
			d.podsListed = true
		case action.Verb == plan.ConfirmNo && action.Kind == KindConfigMap:
			d.noConfigMap = true
		case action.Verb == plan.ConfirmNo:
			if d.noPod == nil {
				d.noPod = map[string]bool{}
			}
			d.noPod[action.Name] = true
		case action.Kind == KindPod:
			if t, ok := tasks[action.Name]; ok {
				t.foldOutcome(outcome)
			}
		case action.Kind != KindConfigMap:
		case action.Verb == plan.Create:
			if d.next.State == frameworkv1.FrameworkAttemptCreationPending {
				d.attemptBecomesCreationRequested(outcome.UID)
			}
		case action.Verb == plan.Delete:
			own := d.next.AttemptStatus.ConfigMapUID
			if d.next.State == frameworkv1.FrameworkAttemptDeletionPending && own != nil && *own == action.UID {
				d.attemptBecomesDeletionRequested()
			}
		}
	}
	return true
}

// tasksOf finds the tasks that outcomes are about, by Pod name.
func (d *decision) tasksOf(outcomes []plan.Outcome) map[string]cursor {
	roles := rolesByName(d.next.AttemptStatus.TaskRoleStatuses)
	tasks := make(map[string]cursor, len(outcomes))
	for _, outcome := range outcomes {
		tag, _ := outcome.Action.Tag.(taskTag)
		role := roles[tag.role]
		if role == nil || int(tag.index) >= len(role.TaskStatuses) {
			continue
		}
		tasks[outcome.Action.Name] = cursor{
			d: d, role: role, spec: d.specRoles[role.Name], index: int(tag.index),
		}
	}
	return tasks
}

func (t cursor) foldOutcome(outcome plan.Outcome) {
	task := t.status()
	switch {
	case outcome.Action.Verb == plan.Create && task.State == frameworkv1.TaskAttemptCreationPending:
		if outcome.Refused != nil {
			t.taskBecomesAttemptCompleted(&frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: *PodRefusal(outcome.Refused)})
		} else {
			t.taskBecomesCreationRequested(outcome.UID)
		}
	case outcome.Action.Verb == plan.Delete && task.State == frameworkv1.TaskAttemptDeletionPending &&
		*task.AttemptStatus.PodUID == outcome.Action.UID:
		t.taskBecomesDeletionRequested()
	}
}

// planActions derives the actions from the status. If an action needs a status that is not persisted yet, planActions
// leaves the action out and makes the plan write the status.
func (d *decision) planActions() {
	switch d.next.State {
	case frameworkv1.FrameworkAttemptCreationPending:
		d.planCreation()
	case frameworkv1.FrameworkAttemptCreationRequested:
		d.planArrival()
	case frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning:
		d.planAttempt()
	case frameworkv1.FrameworkAttemptDeletionPending,
		frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting:
		d.planAttemptEnd()
	case frameworkv1.FrameworkAttemptCompleted:
		d.planRemains()
	case frameworkv1.FrameworkCompleted:
		d.planRemains()
		d.planRetention()
	}
	d.PlanCheck(d.Framework)
}

// planCreation creates the attempt's ConfigMap. Before that, it deletes ConfigMaps and Pods of earlier attempts.
func (d *decision) planCreation() {
	if hidden := d.configMapOfPods(); hidden != "" {
		d.Act(plan.Action{Verb: plan.LookFor, Kind: KindConfigMap, Name: d.next.AttemptStatus.ConfigMapName, UID: hidden, Owner: d.Framework.UID})
		return
	}
	d.planLeftovers()
	switch {
	case d.ConfigMap != nil && !d.creationPersisted():
		d.Persist(plan.PersistNow)
	case d.ConfigMap != nil:
		d.planLeftoverConfigMap()
	case d.stopRequested() && len(d.Pods) > 0:
		// The leftovers go first.
	case d.stopRequested():
		d.ActIfCurrent(plan.Action{Verb: plan.ConfirmNo, Kind: KindConfigMap, Name: d.next.AttemptStatus.ConfigMapName, Owner: d.Framework.UID})
	case d.Framework.Spec.ExecutionType == frameworkv1.ExecutionCreate || d.isHeld() || d.Framework.DeletionTimestamp != nil:
	case !d.creationPersisted():
		d.Persist(plan.PersistNow)
	case len(d.Pods) == 0:
		d.ActIfCurrent(plan.Action{
			Verb: plan.Create, Kind: KindConfigMap, Name: d.next.AttemptStatus.ConfigMapName, Owner: d.Framework.UID,
			Object: newConfigMap(d.Framework, d.next),
		})
	}
}

// planArrival reads the created ConfigMap from the API server if the attempt no longer needs it, or if the cache should
// have it by now.
func (d *decision) planArrival() {
	timedOut, at := d.creationTimedOut()
	switch {
	case d.ownConfigMap():
	case d.Gone[*d.next.AttemptStatus.ConfigMapUID]:
		d.listUnseenPods()
	case d.stopRequested(), timedOut:
		d.planLook()
	default:
		d.WakeAt(at)
	}
}

// configMapOfPods returns the UID of the ConfigMap that controls Pods of this attempt, if the cache lacks the
// ConfigMap; "" if there are no such Pods, or the ConfigMap is gone. The ConfigMap may only have lost its label; then
// the controller adopts both the ConfigMap and the Pods.
func (d *decision) configMapOfPods() types.UID {
	if d.ConfigMap != nil || !d.creationPersisted() {
		return ""
	}
	attempt := strconv.Itoa(int(d.next.AttemptStatus.ID))
	for _, pod := range d.sortedPods() {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner != nil && !d.Gone[owner.UID] && pod.Annotations[frameworkv1.KeyFrameworkAttemptID] == attempt {
			return owner.UID
		}
	}
	return ""
}

// planLeftoverConfigMap deletes the ConfigMap, which is no attempt's that goes on.
func (d *decision) planLeftoverConfigMap() {
	if d.ConfigMap.DeletionTimestamp == nil && !d.Deleted[d.ConfigMap.UID] && !d.Gone[d.ConfigMap.UID] {
		d.ActIfChecked(deletion(KindConfigMap, d.ConfigMap))
	}
}

// planRemains deletes objects that exist although no attempt is under way. A former leader may have created a ConfigMap
// too late.
func (d *decision) planRemains() {
	if d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkAttemptCompleted &&
		d.Persisted.State != frameworkv1.FrameworkCompleted {
		return
	}
	d.planLeftovers()
	if d.ConfigMap != nil {
		d.planLeftoverConfigMap()
	}
}

func (d *decision) deleteConfigMap() {
	if d.ownConfigMap() && d.ConfigMap.DeletionTimestamp == nil && !d.Deleted[d.ConfigMap.UID] {
		d.Act(deletion(KindConfigMap, d.ConfigMap))
	}
}

// planAttempt plans the creations and deletions for the tasks of a live attempt. The status need not contain the
// ConfigMap's UID before that: a new controller would find and adopt the ConfigMap, and then its Pods.
func (d *decision) planAttempt() {
	if d.configMapIsOutOfSight() {
		d.planLook()
		return
	}
	// The PodGroup is right before Pods come or go, so that the scheduler never
	// counts with a minimum of yesterday.
	groupReady := d.planPodGroup()
	d.eachTask(func(t cursor) { t.planTask(groupReady) })
	d.planLeftovers()
	if d.listsPods {
		d.listPods()
	}
}

// planPodGroup brings the attempt's PodGroup up to date, and reports whether the PodGroup exists or the attempt needs
// no PodGroup.
func (d *decision) planPodGroup() bool {
	desired := d.desiredPodGroup()
	return desired == nil ||
		jobpods.PlanPodGroup(&d.Draft, *d.next.AttemptStatus.ConfigMapUID, d.PodGroup, desired, d.surplusGoesFirst)
}

// surplusGoesFirst reports whether the gang waits for nodes while it has Pods that a rescale removes and that are not
// being deleted yet.
func (d *decision) surplusGoesFirst() bool {
	if !d.waitsForPlace() {
		return false
	}
	found := false
	d.eachTask(func(t cursor) {
		task, pod := t.status(), t.pod()
		if found || !task.DeletionPending || !task.State.Associated() || d.Deleted[*task.AttemptStatus.PodUID] {
			return
		}
		found = pod != nil && pod.DeletionTimestamp == nil || pod == nil && !d.Gone[*task.AttemptStatus.PodUID]
	})
	return found
}

// waitsForPlace reports whether the attempt is a gang that was never placed.
func (d *decision) waitsForPlace() bool {
	group := d.next.AttemptStatus.PodGroup
	return d.isGang() && (group == nil || !group.EverScheduled)
}

// planTask plans what one task of a live attempt needs.
func (t cursor) planTask(groupReady bool) {
	task, persisted := t.status(), t.persisted()
	name := task.AttemptStatus.PodName
	owner := *t.d.next.AttemptStatus.ConfigMapUID
	action := func(verb plan.Verb) plan.Action {
		return plan.Action{Verb: verb, Kind: KindPod, Name: name, Owner: owner, Tag: taskTag{t.role.Name, task.Index}}
	}
	switch task.State {
	case frameworkv1.TaskAttemptCreationPending:
		switch {
		case persisted == nil || persisted.State != task.State || persisted.DeletionPending != task.DeletionPending:
			t.d.Persist(plan.PersistSoon)
		case t.d.Pods[name] != nil:
			// A leftover, which is not adopted: planLeftovers does that.
		case !t.wanted():
			t.d.ActIfCurrent(action(plan.ConfirmNo))
		case groupReady:
			creation := action(plan.Create)
			creation.Group, creation.Build = t.role.Name, t.podRecipe()
			t.d.ActIfCurrent(creation)
		}
	case frameworkv1.TaskAttemptDeletionPending:
		switch {
		case persisted == nil || persisted.AttemptStatus.CompletionStatus == nil ||
			persisted.State != frameworkv1.TaskAttemptDeletionPending:
			t.d.Persist(plan.PersistSoon)
		case groupReady || !task.DeletionPending || t.d.waitsForPlace():
			deletion := action(plan.Delete)
			deletion.UID, deletion.Propagation = *task.AttemptStatus.PodUID, metav1.DeletePropagationBackground
			t.d.Act(deletion)
		}
	case frameworkv1.TaskAttemptDeleting:
		t.d.planForce(t.role, t.pod(), t.terminatingSince(), t.d.Act)
	}
	t.planLook()
}

// planLook plans a live read of the task's Pod if the Pod has left the cache.
func (t cursor) planLook() {
	outOfSight, at := t.podIsOutOfSight()
	t.d.WakeAt(at)
	if outOfSight {
		attempt := &t.status().AttemptStatus
		owner := *t.d.next.AttemptStatus.ConfigMapUID
		t.d.Act(plan.Action{Verb: plan.LookFor, Kind: KindPod, Name: attempt.PodName, UID: *attempt.PodUID, Owner: owner})
	}
}

// planAttemptEnd deletes the ConfigMap and the Pods of an attempt whose end is decided. The garbage collector would
// delete the Pods too, but one by one.
func (d *decision) planAttemptEnd() {
	if d.Persisted == nil || d.Persisted.AttemptStatus.CompletionStatus == nil {
		d.Persist(plan.PersistNow)
		return
	}
	if d.next.State == frameworkv1.FrameworkAttemptDeletionPending {
		d.deleteConfigMap()
	}
	switch {
	case d.configMapIsOutOfSight():
		d.planLook()
	case !d.ownConfigMap() && !d.anythingSeen():
		d.listUnseenPods()
	}
	d.eachTask(func(t cursor) {
		persisted := t.persisted()
		unwritten := persisted == nil || persisted.AttemptStatus.CompletionStatus == nil
		switch pod := t.pod(); {
		case t.status().AttemptStatus.CompletionStatus != nil && t.status().State.Associated() && unwritten:
			d.Persist(plan.PersistSoon)
		case pod != nil:
			d.planDeletion(t.role, pod, t.terminatingSince())
		}
		t.planLook()
	})
	d.planLeftovers()
	if d.ConfigMap != nil && !d.ownConfigMap() {
		d.planLeftoverConfigMap()
	}
}

// listUnseenPods plans a list of the Pods of an attempt that has no ConfigMap, unless the cache is known to have all of
// them.
func (d *decision) listUnseenPods() {
	if d.mayHaveUnseenPods() {
		d.listPods()
	}
}

// listPods looks live at the Pods of the attempt.
func (d *decision) listPods() {
	d.ActIfCurrent(plan.Action{
		Verb: plan.List, Kind: KindPod, Name: d.Framework.Name, UID: d.Framework.UID, Owner: *d.next.AttemptStatus.ConfigMapUID,
		Selector: frameworkv1.KeyFrameworkName + "=" + d.Framework.Name,
	})
}

// planLook plans a live read of the attempt's ConfigMap, which has left the cache.
func (d *decision) planLook() {
	attempt := &d.next.AttemptStatus
	d.Act(plan.Action{Verb: plan.LookFor, Kind: KindConfigMap, Name: attempt.ConfigMapName, UID: *attempt.ConfigMapUID, Owner: d.Framework.UID})
}

// planLeftovers deletes Pods of the Framework that belong to no task. A Pod that a task has replaced belongs to the
// task until the status with the new Pod is written.
func (d *decision) planLeftovers() {
	if d.recorded == len(d.Pods) {
		return
	}
	taken := make(map[types.UID]bool, d.recorded)
	roles := rolesByName(d.next.AttemptStatus.TaskRoleStatuses)
	d.eachTask(func(t cursor) {
		if pod := t.pod(); pod != nil && t.status().State.Associated() {
			taken[pod.UID] = true
		}
		if pod := t.persistedAwaits(); pod != nil {
			taken[pod.UID] = true
			d.Persist(plan.PersistSoon)
		}
	})
	for _, pod := range d.sortedPods() {
		switch role := roles[pod.Labels[frameworkv1.KeyTaskRoleName]]; {
		case taken[pod.UID]:
		case pod.DeletionTimestamp != nil:
			d.planForce(role, pod, d.seenTerminating(pod), d.ActIfChecked)
		case !d.Deleted[pod.UID]:
			d.ActIfChecked(deletion(KindPod, pod))
		}
	}
}

// planDeletion deletes a Pod, by force if the deletion takes too long.
func (d *decision) planDeletion(role *frameworkv1.TaskRoleStatus, pod *corev1.Pod, since metav1.Time) {
	switch {
	case pod.DeletionTimestamp != nil:
		d.planForce(role, pod, since, d.Act)
	case !d.Deleted[pod.UID]:
		d.Act(deletion(KindPod, pod))
	}
}

// planForce deletes a Pod by force if its deletion takes longer than the role allows. The time counts from when the
// controller first saw the deletion, by the controller's own clock: the API server's clock may be an hour ahead.
func (d *decision) planForce(role *frameworkv1.TaskRoleStatus, pod *corev1.Pod, since metav1.Time, act func(plan.Action)) {
	if role == nil || role.PodGracefulDeletionTimeoutSec == nil || pod == nil || pod.DeletionTimestamp == nil || d.Forced[pod.UID] {
		return
	}
	timeout := configv1alpha1.Seconds(max(0, *role.PodGracefulDeletionTimeoutSec))
	over, at := d.over(since, timeout)
	d.WakeAt(at)
	if over {
		act(plan.Action{Verb: plan.ForceDelete, Kind: KindPod, Name: pod.Name, UID: pod.UID})
	}
}

// seenTerminating is since when the deletion of a Pod is known.
func (d *decision) seenTerminating(pod *corev1.Pod) metav1.Time {
	if seen, ok := d.Terminating[pod.UID]; ok {
		return metav1.NewTime(seen)
	}
	return d.now
}

// terminatingSince returns when the deletion of the task's Pod was first seen: the time in the status if there is one,
// since a controller that has just started knows no other.
func (t cursor) terminatingSince() metav1.Time {
	task, pod := t.status(), t.pod()
	switch {
	case pod == nil:
		return t.d.now
	case task.State == frameworkv1.TaskAttemptDeleting:
		return task.TransitionTime
	default:
		return t.d.seenTerminating(pod)
	}
}

// sortedPods returns the cached Pods by name, so that plans don't depend on chance.
func (d *decision) sortedPods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(d.Pods))
	for _, pod := range d.Pods {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// planRetention deletes a Framework that has been Completed for long enough.
func (d *decision) planRetention() {
	if d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkCompleted {
		d.Persist(plan.PersistNow)
		return
	}
	if d.Framework.DeletionTimestamp != nil || d.Deleted[d.Framework.UID] {
		return
	}
	if over, at := d.over(d.next.TransitionTime, d.Options.CompletedRetention); !over {
		d.WakeAt(at)
		return
	}
	d.history = append(d.history, History{Trigger: OnFrameworkDeletion, Framework: d.withPersistedStatus()})
	d.Act(deletion(KindFramework, d.Framework))
}

// deletion returns the action that deletes an object: a Pod in the background, any other object in the foreground.
func deletion(kind string, object metav1.Object) plan.Action {
	action := jobpods.Deletion(kind, object)
	if kind != KindPod {
		action.Propagation = metav1.DeletePropagationForeground
	}
	return action
}
