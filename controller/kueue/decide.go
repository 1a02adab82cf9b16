// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// workloads and flavors are how the API server knows Kueue's objects.
var (
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	flavors   = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "resourceflavors"}
)

// Conditions of Workloads.
const (
	conditionQuotaReserved = "QuotaReserved"
	conditionAdmitted      = "Admitted"
	conditionEvicted       = "Evicted"
	conditionRequeued      = "Requeued"
	conditionFinished      = "Finished"
)

// maxPodSets is how many kinds of Pods a Workload may have.
const maxPodSets = 18

// settleDelay is how long a Framework has lost its annotation at least when its quota is given back.
// Whoever starts attempts may see the loss later than this package does.
const settleDelay = 2 * time.Second

// situation is what is known of a Framework in a queue.
type situation struct {
	framework *frameworkv1.Framework
	// workload is nil if there is none.
	workload *unstructured.Unstructured
	// heldSince is since when the Framework is known to have no annotation.
	heldSince time.Time
	now       time.Time
}

// step is one write. At most one of its fields is set.
type step struct {
	create *unstructured.Unstructured
	// remove says that the Workload is to be deleted.
	remove bool
	// admit has the Framework have the annotation that the Workload implies, and hold has it have none.
	admit, hold bool
	// status is what the status of the Workload is to be.
	status map[string]any
	// again is in what time to decide anew without a write.
	again time.Duration
	// refusal says why the Framework can't be in a queue, for the user.
	refusal string
}

// decide is the next step.
func decide(s situation) step {
	annotated := s.framework.Annotations[frameworkv1.AnnotationAdmission] != ""
	switch {
	case s.framework.DeletionTimestamp != nil:
		return step{} // the Workload goes with the Framework
	case s.workload == nil && annotated && !isCompleted(s.framework):
		return step{hold: true}
	case s.workload == nil:
		return decideFirst(s.framework)
	case !metav1.IsControlledBy(s.workload, s.framework):
		return step{refusal: fmt.Sprintf("there is a Workload %s that is not the Framework's", s.workload.GetName())}
	case s.workload.GetDeletionTimestamp() != nil:
		return step{hold: annotated && !isCompleted(s.framework)}
	case isTrue(s.workload, conditionFinished):
		return step{}
	case isCompleted(s.framework):
		return step{status: finished(s)}
	case isTrue(s.workload, conditionEvicted):
		return giveWay(s, annotated)
	case !isFor(s.workload, s.framework):
		return queueAnew(s, annotated)
	case isTrue(s.workload, conditionAdmitted):
		return step{admit: true}
	default:
		return step{hold: annotated}
	}
}

// decideFirst is the step of a Framework without a Workload.
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

// giveWay has an evicted Framework lose its annotation, and give its quota back when nothing of it
// is left.
func giveWay(s situation, annotated bool) step {
	if !annotated && !isTrue(s.workload, conditionQuotaReserved) {
		return step{}
	}
	if next, left := leave(s, annotated); left {
		return next
	}
	return step{status: released(s)}
}

// queueAnew has a Framework that asks for something else than its Workload give way, and have another
// Workload then: there is quota for that, or not.
func queueAnew(s situation, annotated bool) step {
	if next, left := leave(s, annotated); left && isTrue(s.workload, conditionQuotaReserved) {
		return next
	}
	return step{hold: annotated, remove: !annotated}
}

// leave is the next step before nothing of a Framework is left that is to give way, if something is.
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

// isInactive says whether nothing of the Framework runs.
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

// workloadName is the name of a Framework's Workload.
func workloadName(framework string) string {
	return "framework-" + framework
}

// annotationAsked of a Workload is a digest of what quota its Framework asked for when it was made. Kueue
// may change what is in the Workload itself.
const annotationAsked = "lockstep.dev/asked-for"

// newWorkload is the Workload of a Framework. The error says why there can't be one.
func newWorkload(framework *frameworkv1.Framework) (*unstructured.Unstructured, error) {
	sets, digest, err := podSetsOf(framework)
	if err != nil {
		return nil, err
	}
	workload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workloads.GroupVersion().String(), "kind": "Workload",
		"spec": map[string]any{"queueName": framework.Labels[frameworkv1.LabelQueue], "podSets": sets},
	}}
	workload.SetNamespace(framework.Namespace)
	workload.SetName(workloadName(framework.Name))
	workload.SetAnnotations(map[string]string{annotationAsked: digest})
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(framework, frameworkv1.FrameworkGroupVersionKind)})
	return workload, nil
}

func podSetName(role string) string { return strings.ToLower(role) }

// isFor says whether a Workload is about what the Framework asks for, in its queue. One without a digest, or with
// one that another build has made by other fields, is held against the numbers of Pods alone.
func isFor(workload *unstructured.Unstructured, framework *frameworkv1.Framework) bool {
	queue, _, _ := unstructured.NestedString(workload.Object, "spec", "queueName")
	sets, _, _ := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	have, want := map[string]int64{}, map[string]int64{}
	for _, item := range sets {
		if set, ok := item.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(set, "name")
			have[name], _, _ = unstructured.NestedInt64(set, "count")
		}
	}
	for _, role := range framework.Spec.TaskRoles {
		if role.TaskNumber > 0 {
			want[podSetName(role.Name)] = int64(role.TaskNumber)
		}
	}
	if queue != framework.Labels[frameworkv1.LabelQueue] || !maps.Equal(have, want) {
		return false
	}
	asked := workload.GetAnnotations()[annotationAsked]
	if !strings.HasPrefix(asked, digestVersion) {
		return true
	}
	_, digest, err := podSetsOf(framework)
	return err == nil && asked == digest
}

// conditionsOf are the conditions of a Workload.
func conditionsOf(workload *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	var conditions []map[string]any
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

func conditionOf(workload *unstructured.Unstructured, kind string) map[string]any {
	conditions := conditionsOf(workload)
	i := slices.IndexFunc(conditions, func(c map[string]any) bool { return c["type"] == kind })
	if i < 0 {
		return nil
	}
	return conditions[i]
}

func isTrue(workload *unstructured.Unstructured, kind string) bool {
	return conditionOf(workload, kind)["status"] == "True"
}

// with are the conditions of a Workload with another one.
func with(conditions []map[string]any, s situation, kind string, status metav1.ConditionStatus, reason, message string) []map[string]any {
	next := map[string]any{"type": kind, "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": s.now.UTC().Format(time.RFC3339), "observedGeneration": s.workload.GetGeneration()}
	i := slices.IndexFunc(conditions, func(c map[string]any) bool { return c["type"] == kind })
	if i < 0 {
		return append(conditions, next)
	}
	if conditions[i]["status"] == next["status"] {
		next["lastTransitionTime"] = conditions[i]["lastTransitionTime"]
	}
	conditions[i] = next
	return conditions
}

// released is the status of a Workload that gives its quota back, as Kueue's own integrations
// write it. What was preempted is in the queue again at once.
func released(s situation) map[string]any {
	evicted := conditionOf(s.workload, conditionEvicted)
	reason, _ := evicted["reason"].(string)
	message, _ := evicted["message"].(string)
	requeued := metav1.ConditionFalse
	if reason == "Preempted" {
		requeued = metav1.ConditionTrue
	}
	conditions := conditionsOf(s.workload)
	conditions = with(conditions, s, conditionRequeued, requeued, reason, message)
	conditions = with(conditions, s, conditionQuotaReserved, metav1.ConditionFalse, "Pending", message)
	conditions = with(conditions, s, conditionAdmitted, metav1.ConditionFalse, "NoReservation", "The workload has no reservation")
	return map[string]any{"admission": nil, "conditions": conditions}
}

// finished is the status of the Workload of a Framework that is Completed.
func finished(s situation) map[string]any {
	reason, message := "Failed", "The Framework has failed"
	if end := s.framework.Status.AttemptStatus.CompletionStatus; end != nil && end.Type.Name == frameworkv1.CompletionTypeSucceeded {
		reason, message = "Succeeded", "The Framework has succeeded"
	}
	return map[string]any{"conditions": with(conditionsOf(s.workload), s, conditionFinished, metav1.ConditionTrue, reason, message)}
}

// flavor is where Pods may run that use the quota of one of Kueue's ResourceFlavors.
type flavor struct {
	nodeLabels  map[string]string
	tolerations []corev1.Toleration
}

// admissionOf is what Kueue has admitted. Where a flavor is, is asked.
func admissionOf(workload *unstructured.Unstructured, find func(name string) (flavor, error)) (frameworkv1.Admission, error) {
	admission := frameworkv1.Admission{Workload: string(workload.GetUID()), Roles: map[string]frameworkv1.RoleAdmission{}}
	assignments, _, _ := unstructured.NestedSlice(workload.Object, "status", "admission", "podSetAssignments")
	for _, item := range assignments {
		assignment, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(assignment, "name")
		byResource, _, _ := unstructured.NestedStringMap(assignment, "flavors")
		var role frameworkv1.RoleAdmission
		for _, name := range slices.Compact(slices.Sorted(maps.Values(byResource))) {
			found, err := find(name)
			if err != nil {
				return admission, err
			}
			if role.NodeSelector == nil {
				role.NodeSelector = map[string]string{}
			}
			maps.Copy(role.NodeSelector, found.nodeLabels)
			role.Tolerations = append(role.Tolerations, found.tolerations...)
		}
		admission.Roles[name] = role
	}
	return admission, nil
}
