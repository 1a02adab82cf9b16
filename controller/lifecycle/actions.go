// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// foldOutcomes brings what came of the last round's actions into the status.
// Most of it gates nothing: if it is lost in a crash, the objects that it tells
// of are found as leftovers, deleted, and made anew.
func (d *decision) foldOutcomes() (goOn bool) {
	tasks := d.tasksOf(d.Outcomes)
	for _, outcome := range d.Outcomes {
		action := outcome.Action
		switch action.Kind {
		case CreateConfigMap:
			if d.next.State == frameworkv1.FrameworkAttemptCreationPending {
				d.attemptBecomesCreationRequested(outcome)
			}
		case DeleteConfigMap:
			own := d.next.AttemptStatus.ConfigMapUID
			if d.next.State == frameworkv1.FrameworkAttemptDeletionPending && own != nil && *own == action.UID {
				d.attemptBecomesDeletionRequested()
			}
		case CleanConfigMap:
			d.configMapCleaned = true
		case CleanPod:
			if d.podsCleaned == nil {
				d.podsCleaned = map[string]bool{}
			}
			d.podsCleaned[action.Name] = true
		case CreatePod, DeletePod:
			if t, ok := tasks[action.Name]; ok {
				t.foldOutcome(outcome)
			}
		}
	}
	return true
}

// tasksOf finds the tasks that outcomes are about, by Pod name.
func (d *decision) tasksOf(outcomes []Outcome) map[string]cursor {
	roles := make(map[string]*frameworkv1.TaskRoleStatus, len(d.next.AttemptStatus.TaskRoleStatuses))
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		roles[role.Name] = role
	}
	tasks := make(map[string]cursor, len(outcomes))
	for _, outcome := range outcomes {
		role := roles[outcome.Action.Role]
		if role == nil || int(outcome.Action.Index) >= len(role.TaskStatuses) {
			continue
		}
		tasks[outcome.Action.Name] = cursor{
			d: d, role: role, spec: d.specRoles[role.Name], index: int(outcome.Action.Index),
		}
	}
	return tasks
}

func (t cursor) foldOutcome(outcome Outcome) {
	task := t.status()
	switch {
	case outcome.Action.Kind == CreatePod && task.State == frameworkv1.TaskAttemptCreationPending:
		if outcome.Refused != nil {
			t.taskBecomesAttemptCompleted(&frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: *outcome.Refused})
		} else {
			t.taskBecomesCreationRequested(outcome)
		}
	case outcome.Action.Kind == DeletePod && task.State == frameworkv1.TaskAttemptDeletionPending &&
		*task.AttemptStatus.PodUID == outcome.Action.UID:
		t.taskBecomesDeletionRequested()
	}
}

// planActions derives from the status what is to be done. What rests on
// something that is not persisted asks for the write instead.
func (d *decision) planActions() {
	switch d.next.State {
	case frameworkv1.FrameworkAttemptCreationPending:
		d.planCreation()
	case frameworkv1.FrameworkAttemptCreationRequested:
		if !d.ownConfigMap() && (d.stopRequested() || d.creationTimedOut()) {
			d.act(Action{Kind: CleanConfigMap, Name: d.next.AttemptStatus.ConfigMapName, Owner: d.Framework.UID})
		}
	case frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning:
		d.planAttempt()
	case frameworkv1.FrameworkAttemptDeletionPending,
		frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting:
		d.planAttemptEnd()
	case frameworkv1.FrameworkCompleted:
		d.planRetention()
	}
}

func (d *decision) act(action Action) {
	d.plan.Actions = append(d.plan.Actions, action)
}

// planCreation creates the attempt's ConfigMap. One that is there already was
// not recorded, so it is not known what was done with it: it goes first, and its
// Pods with it.
func (d *decision) planCreation() {
	d.planLeftovers()
	switch {
	case d.ConfigMap != nil && !d.stopRequested():
		d.deleteConfigMap()
	case d.stopRequested():
		d.act(Action{Kind: CleanConfigMap, Name: d.next.AttemptStatus.ConfigMapName, Owner: d.Framework.UID})
	case d.Framework.Spec.ExecutionType == frameworkv1.ExecutionCreate || d.Framework.DeletionTimestamp != nil:
	case d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkAttemptCreationPending:
		d.persist(PersistNow)
	default:
		d.act(Action{
			Kind: CreateConfigMap, Name: d.next.AttemptStatus.ConfigMapName, Owner: d.Framework.UID,
			ConfigMap: newConfigMap(d.Framework, d.next),
		})
	}
}

func (d *decision) deleteConfigMap() {
	if d.ConfigMap.DeletionTimestamp == nil && !d.Deleted[d.ConfigMap.UID] {
		d.act(Action{Kind: DeleteConfigMap, Name: d.ConfigMap.Name, UID: d.ConfigMap.UID})
	}
}

// planAttempt creates and deletes what the tasks of a live attempt need. The UID of
// its ConfigMap need not be persisted for that: a controller that begins without
// knowing it deletes the ConfigMap, and with it all that was made for it, as it
// would delete Pods that no task has recorded.
func (d *decision) planAttempt() {
	// The PodGroup is right before Pods come or go, so that the scheduler never
	// counts with a minimum of yesterday.
	groupReady := d.planPodGroup()
	d.eachTask(func(t cursor) { t.planTask(groupReady) })
	d.planLeftovers()
}

// planPodGroup makes the attempt's PodGroup what it has to be. It says whether
// it is, or none is needed.
func (d *decision) planPodGroup() bool {
	desired := d.desiredPodGroup()
	if desired == nil {
		return true
	}
	switch have := d.PodGroup; {
	case have == nil:
		d.act(Action{Kind: CreatePodGroup, Name: desired.Name, Owner: *d.next.AttemptStatus.ConfigMapUID, PodGroup: desired})
	case have.DeletionTimestamp != nil:
		// It is made anew once it is gone.
	case have.Spec.MinMember == desired.Spec.MinMember &&
		apiequality.Semantic.DeepEqual(have.Spec.MinRoleMember, desired.Spec.MinRoleMember):
		return true
	default:
		updated := have.DeepCopy()
		updated.Spec.MinMember = desired.Spec.MinMember
		updated.Spec.MinRoleMember = desired.Spec.MinRoleMember
		d.act(Action{Kind: UpdatePodGroup, Name: have.Name, UID: have.UID, PodGroup: updated})
	}
	return false
}

// planTask plans what one task of a live attempt needs.
func (t cursor) planTask(groupReady bool) {
	task, persisted := t.status(), t.persisted()
	name := task.AttemptStatus.PodName
	owner := *t.d.next.AttemptStatus.ConfigMapUID
	act := func(kind ActionKind, uid types.UID) {
		action := Action{Kind: kind, Name: name, UID: uid, Role: t.role.Name, Index: task.Index, Owner: owner}
		if kind == CreatePod {
			action.Pod = t.podRecipe()
		}
		t.d.act(action)
	}
	switch task.State {
	case frameworkv1.TaskAttemptCreationPending:
		switch {
		case persisted == nil || persisted.State != task.State || persisted.DeletionPending != task.DeletionPending:
			t.d.persist(PersistSoon)
		case t.d.Pods[name] != nil:
			// A leftover: planLeftovers sees to it.
		case !t.wanted():
			act(CleanPod, "")
		case groupReady:
			act(CreatePod, "")
		}
	case frameworkv1.TaskAttemptCreationRequested:
		if t.pod() == nil && (task.DeletionPending || t.creationTimedOut()) {
			act(CleanPod, "")
		}
	case frameworkv1.TaskAttemptDeletionPending:
		switch {
		case persisted == nil || persisted.AttemptStatus.CompletionStatus == nil ||
			persisted.State != frameworkv1.TaskAttemptDeletionPending:
			t.d.persist(PersistSoon)
		case groupReady || !task.DeletionPending:
			act(DeletePod, *task.AttemptStatus.PodUID)
		}
	case frameworkv1.TaskAttemptDeleting:
		t.d.planForce(t.role, t.pod())
	}
}

// planAttemptEnd deletes the ConfigMap of an attempt whose end is decided, and
// its Pods beside it: the garbage collector would do that too, one by one.
func (d *decision) planAttemptEnd() {
	if d.Persisted == nil || d.Persisted.AttemptStatus.CompletionStatus == nil {
		d.persist(PersistNow)
		return
	}
	if d.next.State == frameworkv1.FrameworkAttemptDeletionPending {
		d.deleteConfigMap()
	}
	roles := make(map[string]*frameworkv1.TaskRoleStatus, len(d.next.AttemptStatus.TaskRoleStatuses))
	unwritten := map[string]bool{}
	d.eachTask(func(t cursor) {
		roles[t.role.Name] = t.role
		ended := t.status().AttemptStatus.CompletionStatus != nil
		if persisted := t.persisted(); ended && t.status().State.Associated() &&
			(persisted == nil || persisted.AttemptStatus.CompletionStatus == nil) {
			unwritten[t.status().AttemptStatus.PodName] = true
			d.persist(PersistSoon)
		}
	})
	for _, pod := range d.sortedPods() {
		if !unwritten[pod.Name] {
			d.planDeletion(roles[pod.Labels[frameworkv1.KeyTaskRoleName]], pod)
		}
	}
}

// planLeftovers deletes Pods that no task has recorded. They are never adopted:
// it is not known what they were made from.
func (d *decision) planLeftovers() {
	if d.recorded == len(d.Pods) {
		return
	}
	taken := make(map[string]bool, d.recorded)
	roles := make(map[string]*frameworkv1.TaskRoleStatus, len(d.next.AttemptStatus.TaskRoleStatuses))
	d.eachTask(func(t cursor) {
		roles[t.role.Name] = t.role
		if t.status().State.Associated() && t.pod() != nil {
			taken[t.status().AttemptStatus.PodName] = true
		}
	})
	for _, pod := range d.sortedPods() {
		if !taken[pod.Name] {
			d.planDeletion(roles[pod.Labels[frameworkv1.KeyTaskRoleName]], pod)
		}
	}
}

// planDeletion deletes a Pod, by force if it takes too long.
func (d *decision) planDeletion(role *frameworkv1.TaskRoleStatus, pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		d.planForce(role, pod)
	case !d.Deleted[pod.UID]:
		d.act(Action{Kind: DeletePod, Name: pod.Name, UID: pod.UID})
	}
}

// planForce deletes a Pod by force once its deletion has taken longer than the
// role allows. The deletion began when the API server accepted it.
func (d *decision) planForce(role *frameworkv1.TaskRoleStatus, pod *corev1.Pod) {
	if role == nil || role.PodGracefulDeletionTimeoutSec == nil || pod == nil || pod.DeletionTimestamp == nil {
		return
	}
	begun := *pod.DeletionTimestamp
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		begun.Time = begun.Add(-time.Duration(*grace) * time.Second)
	}
	timeout := configv1alpha1.Seconds(max(0, *role.PodGracefulDeletionTimeoutSec))
	if !d.Forced[pod.UID] && d.due(begun, timeout) {
		d.act(Action{Kind: ForceDeletePod, Name: pod.Name, UID: pod.UID})
	}
}

// sortedPods are the cached Pods by name, so that plans don't depend on chance.
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
		d.persist(PersistNow)
		return
	}
	if d.Framework.DeletionTimestamp != nil || d.Deleted[d.Framework.UID] ||
		!d.due(d.next.TransitionTime, d.Options.CompletedRetention) {
		return
	}
	d.plan.History = append(d.plan.History, History{Trigger: OnFrameworkDeletion, Framework: d.withPersistedStatus()})
	d.act(Action{Kind: DeleteFramework, Name: d.Framework.Name, UID: d.Framework.UID})
}
