// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// maxPodSets is how many kinds of Pods a Workload may have.
const maxPodSets = 18

// settleDelay is the least time between the removal of a Framework's annotation and the return of its quota. The
// controller that runs the attempts may see the removal later than this controller.
const settleDelay = 2 * time.Second

// situation is what is known of a Framework in a queue.
type situation struct {
	framework *frameworkv1.Framework
	// workload is nil if there is no Workload.
	workload *workload
	// heldSince is since when the Framework is known to have no annotation.
	heldSince time.Time
	now       time.Time
}

// step is what to do next: nothing, one write, or the two writes admit and status. At most one field is set otherwise.
type step struct {
	create *workload
	// remove says that the Workload is to be deleted.
	remove bool
	// admit means that the Framework gets the annotation that its Workload implies; hold, that it loses the annotation.
	admit, hold bool
	// status changes the status of the Workload. If admit is set too, the annotation is written first.
	status *statusChange
	// again is after what time to decide again without a write.
	again time.Duration
	// refusal says why the Framework can't be in a queue, for the user.
	refusal string
}

// statusChange is a merge patch for the status of a Workload. Empty fields stay unchanged.
type statusChange struct {
	// Admission is null to take it away.
	Admission       json.RawMessage    `json:"admission,omitempty"`
	Conditions      []metav1.Condition `json:"conditions,omitempty"`
	AdmissionChecks []checkState       `json:"admissionChecks,omitempty"`
}

// decide returns the next step.
func decide(s situation) step {
	annotated := s.framework.Annotations[frameworkv1.AnnotationAdmission] != ""
	switch {
	case s.framework.DeletionTimestamp != nil:
		return step{} // the Workload goes with the Framework
	case s.workload == nil && annotated && !isCompleted(s.framework):
		return step{hold: true}
	case s.workload == nil:
		return decideFirst(s.framework)
	case isOfEarlier(s.workload, s.framework):
		return step{} // the garbage collector deletes it, and then it is gone
	case !metav1.IsControlledBy(s.workload, s.framework):
		return step{refusal: fmt.Sprintf("the Workload %s is not the Framework's: delete it, or give the Framework another name", s.workload.GetName())}
	case s.workload.GetDeletionTimestamp() != nil:
		return step{hold: annotated && !isCompleted(s.framework)}
	case s.workload.is(conditionFinished):
		return step{}
	case isCompleted(s.framework):
		return step{status: finished(s)}
	case s.workload.is(conditionEvicted):
		return giveWay(s, annotated)
	case !isFor(s.workload, s.framework):
		return queueAnew(s, annotated)
	case s.workload.is(conditionAdmitted) && isPreempted(s.framework):
		return step{status: preempted(s)}
	case s.workload.is(conditionAdmitted):
		return step{admit: true, status: ready(s, isReady(s.framework))}
	case annotated:
		return step{hold: true}
	default:
		return step{status: notStarted(s)}
	}
}

// isOfEarlier reports whether a Workload belongs to an earlier Framework of the same name.
func isOfEarlier(w *workload, framework *frameworkv1.Framework) bool {
	return isOf(w, framework.Name) && !metav1.IsControlledBy(w, framework)
}

// isOf reports whether a Workload belongs to a Framework of a name.
func isOf(w *workload, framework string) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	return owner != nil && owner.Kind == frameworkv1.FrameworkKind && owner.Name == framework
}

// decideFirst returns the step of a Framework without a Workload.
func decideFirst(framework *frameworkv1.Framework) step {
	if isCompleted(framework) || framework.Spec.ExecutionType != frameworkv1.ExecutionStart {
		return step{}
	}
	workload, err := newWorkload(framework)
	if err != nil {
		return step{refusal: err.Error()}
	}
	return step{create: workload}
}

// giveWay removes the annotation of the admission from a Framework that Kueue has evicted. When the Framework's attempt
// is gone, giveWay returns the quota.
func giveWay(s situation, annotated bool) step {
	if !annotated && !s.workload.is(conditionQuotaReserved) {
		return step{}
	}
	if next, left := leave(s, annotated); left {
		return next
	}
	return step{status: released(s)}
}

// queueAnew stops a Framework that no longer matches its Workload, and then replaces the Workload. The new Workload may
// have to wait for quota.
func queueAnew(s situation, annotated bool) step {
	if next, left := leave(s, annotated); left && s.workload.is(conditionQuotaReserved) {
		return next
	}
	return step{hold: annotated, remove: !annotated}
}

// leave returns the next step of stopping a Framework. `left` reports that a part of the Framework is not stopped yet.
func leave(s situation, annotated bool) (next step, left bool) {
	switch {
	case annotated:
		return step{hold: true}, true
	case !isInactive(s.framework):
		return step{}, true // its attempt ends, of which there is an event
	}
	wait := settleDelay - s.now.Sub(s.heldSince)
	return step{again: wait}, wait > 0
}

func isCompleted(framework *frameworkv1.Framework) bool {
	return framework.Status != nil && framework.Status.State == frameworkv1.FrameworkCompleted
}

// isInactive reports whether nothing of the Framework runs.
func isInactive(framework *frameworkv1.Framework) bool {
	if framework.Status == nil {
		return true
	}
	switch framework.Status.State {
	case "", frameworkv1.FrameworkAttemptCreationPending, frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted:
		return true
	default:
		return false
	}
}

// workloadName returns the name of a Framework's Workload.
func workloadName(framework string) string {
	return "framework-" + framework
}

// annotationAsked is an annotation of a Workload: a digest of what its Framework requested when the Workload was
// created. Kueue may change the Workload's spec.
const annotationAsked = "lockstep.dev/asked-for"

// newWorkload returns the Workload of a Framework. If the Framework can't have one, the error says why.
func newWorkload(framework *frameworkv1.Framework) (*workload, error) {
	sets, digest, err := podSetsOf(framework)
	if err != nil {
		return nil, err
	}
	return &workload{
		TypeMeta: metav1.TypeMeta{APIVersion: workloads.GroupVersion().String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: framework.Namespace, Name: workloadName(framework.Name), Annotations: map[string]string{annotationAsked: digest},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(framework, frameworkv1.FrameworkGroupVersionKind)},
		},
		Spec: workloadSpec{QueueName: framework.Labels[frameworkv1.LabelQueue], PodSets: sets},
	}, nil
}

func podSetName(role string) string { return strings.ToLower(role) }

// isFor reports whether a Workload requests what the Framework requests, in the same queue. If the Workload has no
// digest, or one of another version of this program, only the numbers of Pods are compared.
func isFor(w *workload, framework *frameworkv1.Framework) bool {
	have, want := map[string]int32{}, map[string]int32{}
	for _, set := range w.Spec.PodSets {
		have[set.Name] = set.Count
	}
	for _, role := range framework.Spec.TaskRoles {
		if role.TaskNumber > 0 {
			want[podSetName(role.Name)] = role.TaskNumber
		}
	}
	if w.Spec.QueueName != framework.Labels[frameworkv1.LabelQueue] || !maps.Equal(have, want) {
		return false
	}
	asked := w.Annotations[annotationAsked]
	if !strings.HasPrefix(asked, digestVersion) {
		return true
	}
	_, digest, err := podSetsOf(framework)
	return err == nil && asked == digest
}

// isPreempted reports whether Pods of higher priority have preempted an admitted Framework: its last attempt ended by
// that, or all members of its gang were preempted and wait for another place.
func isPreempted(framework *frameworkv1.Framework) bool {
	if framework.Status == nil {
		return false
	}
	attempt := &framework.Status.AttemptStatus
	switch framework.Status.State {
	case frameworkv1.FrameworkAttemptCompleted:
		return lifecycle.UsesUp(attempt, lifecycle.AdmissionOf(framework))
	case frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning:
		group, tasks := attempt.PodGroup, framework.Status.Tasks
		return attempt.TaskAttempts.Preemptions > 0 && group != nil && group.EverScheduled && group.Scheduled == 0 && group.Unschedulable != nil &&
			tasks != nil && tasks.Running == 0 && tasks.Succeeded == 0
	default:
		return false
	}
}

// isReady reports whether the minimum of the gang runs, or all tasks do if there is no gang.
func isReady(framework *frameworkv1.Framework) bool {
	status := framework.Status
	if status == nil || status.State != frameworkv1.FrameworkAttemptRunning {
		return false
	}
	if gang := status.AttemptStatus.Gang; gang != nil && gang.Enabled {
		group := status.AttemptStatus.PodGroup
		return group != nil && (group.Phase == schedulingv1alpha1.PodGroupRunning || group.Phase == schedulingv1alpha1.PodGroupCompleted)
	}
	return status.Tasks != nil && status.Tasks.Total > 0 && status.Tasks.Pending == 0
}

// with returns the conditions of the Workload, changed by the given ones. The Workload itself stays as it is.
func (s situation) with(conditions ...metav1.Condition) []metav1.Condition {
	all := slices.Clone(s.workload.Status.Conditions)
	for _, condition := range conditions {
		condition.ObservedGeneration = s.workload.Generation
		condition.LastTransitionTime = metav1.NewTime(s.now)
		meta.SetStatusCondition(&all, condition)
	}
	return all
}

// notReady is the condition of a Workload with Pods that have not started since its admission.
var notReady = metav1.Condition{Type: conditionPodsReady, Status: metav1.ConditionFalse, Reason: reasonWaitForStart, Message: "Not all tasks run yet"}

// ready returns the change with which the Workload of an admitted Framework shows whether the Pods run; nil if nothing
// has to be changed. Kueue evicts a Workload that does not show running Pods in time.
func ready(s situation, is bool) *statusChange {
	before := meta.FindStatusCondition(s.workload.Status.Conditions, conditionPodsReady)
	recovers := before != nil && (before.Reason == reasonWaitForRecovery || before.Reason == reasonRecovered)
	next := notReady
	switch {
	case is && recovers:
		next = metav1.Condition{Type: conditionPodsReady, Status: metav1.ConditionTrue, Reason: reasonRecovered, Message: "The tasks run again"}
	case is:
		next = metav1.Condition{Type: conditionPodsReady, Status: metav1.ConditionTrue, Reason: reasonStarted, Message: "The tasks run"}
	case recovers, before != nil && before.Status == metav1.ConditionTrue:
		next = metav1.Condition{Type: conditionPodsReady, Status: metav1.ConditionFalse, Reason: reasonWaitForRecovery, Message: "Tasks that have run wait to run again"}
	}
	if before != nil && before.Status == next.Status && before.Reason == next.Reason {
		return nil
	}
	return &statusChange{Conditions: s.with(next)}
}

// notStarted returns the change that removes what a Workload without an admission says about its Pods; nil if there is
// nothing to remove.
func notStarted(s situation) *statusChange {
	before := meta.FindStatusCondition(s.workload.Status.Conditions, conditionPodsReady)
	if before == nil || before.Status == notReady.Status && before.Reason == notReady.Reason {
		return nil
	}
	return &statusChange{Conditions: s.with(notReady)}
}

// preempted returns the change that evicts the Workload of a preempted Framework, as Kueue would: its admission checks
// start again. The quota is returned once no part of the Framework runs.
func preempted(s situation) *statusChange {
	change := &statusChange{Conditions: s.with(metav1.Condition{
		Type: conditionEvicted, Status: metav1.ConditionTrue, Reason: reasonPreempted, Message: "Pods of a higher priority have preempted the Framework",
	})}
	for _, check := range s.workload.Status.AdmissionChecks {
		change.AdmissionChecks = append(change.AdmissionChecks, checkState{
			Name: check.Name, State: "Pending", LastTransitionTime: metav1.NewTime(s.now), Message: "Reset because the Framework was preempted",
			RequeueAfterSeconds: check.RequeueAfterSeconds, RetryCount: check.RetryCount,
		})
	}
	return change
}

// released returns the status of a Workload that returns its quota, as Kueue's own integrations write it. A Framework
// that was preempted, or lost a node, is queued again at once.
func released(s situation) *statusChange {
	evicted := meta.FindStatusCondition(s.workload.Status.Conditions, conditionEvicted)
	requeued := metav1.ConditionFalse
	if evicted.Reason == reasonPreempted || evicted.Reason == reasonNodeFailures {
		requeued = metav1.ConditionTrue
	}
	return &statusChange{Admission: json.RawMessage("null"), Conditions: s.with(
		metav1.Condition{Type: conditionRequeued, Status: requeued, Reason: evicted.Reason, Message: evicted.Message},
		metav1.Condition{Type: conditionQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", Message: evicted.Message},
		metav1.Condition{Type: conditionAdmitted, Status: metav1.ConditionFalse, Reason: "NoReservation", Message: "The workload has no reservation"},
		notReady,
	)}
}

// finished returns the status of the Workload of a Framework that is Completed.
func finished(s situation) *statusChange {
	reason, message := "Failed", "The Framework has failed"
	if end := s.framework.Status.AttemptStatus.CompletionStatus; end != nil && end.Type.Name == frameworkv1.CompletionTypeSucceeded {
		reason, message = "Succeeded", "The Framework has succeeded"
	}
	return &statusChange{Conditions: s.with(metav1.Condition{Type: conditionFinished, Status: metav1.ConditionTrue, Reason: reason, Message: message})}
}

// firstAttempt returns the first attempt for which a new admission counts: the present one or the next. If the
// annotation has the same admission already, the attempt in it stays.
func firstAttempt(s situation) int32 {
	if before := lifecycle.AdmissionOf(s.framework); before != nil && before.Framework == string(s.framework.UID) && before.Workload == string(s.workload.UID) {
		return before.Attempt
	}
	switch status := s.framework.Status; {
	case status == nil:
		return 0
	case status.State == frameworkv1.FrameworkAttemptCompleted:
		return status.AttemptStatus.ID + 1
	default:
		return status.AttemptStatus.ID
	}
}

// admissionOf returns what Kueue has admitted. Where a flavor is, is asked.
func admissionOf(s situation, find func(name string) (flavor, error)) (frameworkv1.Admission, error) {
	admission := frameworkv1.Admission{
		Framework: string(s.framework.UID), Workload: string(s.workload.UID), Attempt: firstAttempt(s), Roles: map[string]frameworkv1.RoleAdmission{},
	}
	if s.workload.Status.Admission == nil {
		return admission, nil
	}
	for _, assignment := range s.workload.Status.Admission.PodSetAssignments {
		var role frameworkv1.RoleAdmission
		for _, name := range slices.Compact(slices.Sorted(maps.Values(assignment.Flavors))) {
			found, err := find(name)
			if err != nil {
				return admission, err
			}
			if role.NodeSelector == nil {
				role.NodeSelector = map[string]string{}
			}
			maps.Copy(role.NodeSelector, found.NodeLabels)
			role.Tolerations = append(role.Tolerations, found.Tolerations...)
		}
		admission.Roles[assignment.Name] = role
	}
	return admission, nil
}
