// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// The phases of a PodGroup of scheduler-plugins, as its own controller writes them.
const (
	// PhasePending: fewer Pods exist than minMember.
	PhasePending = "Pending"
	// PhaseScheduling: enough exist, and too few of them run or have succeeded.
	PhaseScheduling = "Scheduling"
	// PhaseRunning: minMember of them run or have succeeded.
	PhaseRunning = "Running"
	// PhaseFailed: one has failed, and with those that run or have succeeded minMember of
	// them have started. Final.
	PhaseFailed = "Failed"
	// PhaseFinished: minMember of them have succeeded. Final.
	PhaseFinished = "Finished"
)

// ReasonNameTooLong: no Pod can name the group, as its name is longer than a label may be.
const ReasonNameTooLong = "NameTooLong"

// FromSchedulerPlugins is the Group that a PodGroup of scheduler-plugins stands for. What can't
// be read counts as not said. scheduleTimeoutSeconds is for how long room is kept for members that
// are still to come: nothing is held while a gang waits.
func FromSchedulerPlugins(object *unstructured.Unstructured) *Group {
	group := fromObject(SchedulerPlugins, object)
	group.Spec = Spec{
		Minimum:        podgroup.Minimum{Members: max(1, numberIn(object, "spec", "minMember"))},
		DisruptionMode: schedulingv1alpha1.DisruptGang,
		Provision: provisionOf(resourcesIn(object, "spec", "minResources"),
			time.Duration(numberIn(object, "spec", "scheduleTimeoutSeconds"))*time.Second, object.GetAnnotations()),
		Staged: IsStaged(object),
		Halt:   haltOf(object),
	}
	group.Spec.Runtime, group.Warnings = runtimeOf(object, podgroup.Runtimes{}, false)
	group.Asked = group.Spec.Minimum.Members
	if len(group.Key.Name) > validation.LabelValueMaxLength {
		group.Warnings = append(group.Warnings, Warning{Reason: ReasonNameTooLong, Always: true, Message: fmt.Sprintf(
			"Pods name their PodGroup by a label, whose value has at most %d characters: no Pod can be a member of this group", validation.LabelValueMaxLength)})
	}
	status := Status{
		Running:   numberIn(object, "status", "running"),
		Succeeded: numberIn(object, "status", "succeeded"),
		Failed:    numberIn(object, "status", "failed"),
	}
	status.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	status.OccupiedBy, _, _ = unstructured.NestedString(object.Object, "status", "occupiedBy")
	group.Status = &status
	if slices.Contains([]string{PhaseRunning, PhaseFailed, PhaseFinished}, status.Phase) {
		// It has no conditions. But whoever comes after another scheduler knows by the phase
		// that the gang was placed.
		group.Conditions = []schedulingv1alpha1.PodGroupCondition{
			{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonScheduled},
			{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionFalse, Reason: schedulingv1alpha1.ReasonScheduled},
		}
	}
	return group
}

// fromObject is what all objects of other projects have in common.
func fromObject(d Dialect, object *unstructured.Unstructured) *Group {
	group := &Group{
		Key:             Key{Dialect: d, Namespace: object.GetNamespace(), Name: object.GetName()},
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Generation:      object.GetGeneration(),
		Created:         object.GetCreationTimestamp().Time,
		PhaseBy:         phaseBy(object),
	}
	if owners := object.GetOwnerReferences(); len(owners) > 0 {
		group.MadeFor, group.MadeForUID = owners[0].Kind, owners[0].UID
	}
	return group
}

// haltOf is why no member of a group is placed, if it is being deleted.
func haltOf(object *unstructured.Unstructured) Halt {
	if object.GetDeletionTimestamp() != nil {
		return haltOfDeleted
	}
	return Halt{}
}

// numberIn is a number of an object, 0 if there is none or it can't be one.
func numberIn(object *unstructured.Unstructured, path ...string) int32 {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return 0
	}
	return number(value)
}

// resourcesIn are a list of resources of an object, nil if there is none.
func resourcesIn(object *unstructured.Unstructured, path ...string) provision.Amounts {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return nil
	}
	list, _ := value.(map[string]any)
	return provision.Read(list)
}

// nextOfSchedulerPlugins is the status of a PodGroup of scheduler-plugins that follows from the
// present one.
func nextOfSchedulerPlugins(now Status, asked int32, facts Facts) Status {
	if now.Phase == PhaseFinished || now.Phase == PhaseFailed {
		return now
	}
	pods := facts.Pods
	next := Status{Phase: phaseOf(asked, pods), Running: pods.Running, Succeeded: pods.Succeeded, Failed: pods.Failed, OccupiedBy: now.OccupiedBy}
	if next.OccupiedBy == "" && next.Phase != PhasePending && facts.Member != nil {
		next.OccupiedBy = ownersOf(facts.Member)
	}
	return next
}

// phaseOf is the phase of a group that is not in a final one.
func phaseOf(least int32, pods Census) string {
	switch {
	case pods.Exist < least:
		return PhasePending
	case pods.Succeeded >= least:
		return PhaseFinished
	case pods.Failed > 0 && pods.Failed+pods.Running+pods.Succeeded >= least:
		return PhaseFailed
	case pods.Running+pods.Succeeded >= least:
		return PhaseRunning
	default:
		return PhaseScheduling
	}
}

// ownersOf are the owners of a Pod, as the field occupiedBy has them.
func ownersOf(pod *corev1.Pod) string {
	owners := make([]string, len(pod.OwnerReferences))
	for i, owner := range pod.OwnerReferences {
		owners[i] = pod.Namespace + "/" + owner.Name
	}
	slices.Sort(owners)
	return strings.Join(owners, ",")
}

// number is a whole number of an object, at least 0.
func number(value any) int32 {
	switch n := value.(type) {
	case int64:
		return int32(min(max(n, 0), math.MaxInt32))
	case float64:
		return int32(min(max(n, 0), math.MaxInt32))
	default:
		return 0
	}
}
