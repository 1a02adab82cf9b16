// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	xv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/untyped"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// The phases of scheduler-plugins' PodGroup, with the meaning that its own controller gives them.
const (
	// PhasePending: fewer Pods exist than minMember.
	PhasePending = string(xv1alpha1.PodGroupPending)
	// PhaseScheduling: enough Pods exist, but too few run or have succeeded.
	PhaseScheduling = string(xv1alpha1.PodGroupScheduling)
	// PhaseRunning: minMember Pods run or have succeeded.
	PhaseRunning = string(xv1alpha1.PodGroupRunning)
	// PhaseFailed: a Pod has failed, and minMember Pods run, have succeeded or have failed. Final.
	PhaseFailed = string(xv1alpha1.PodGroupFailed)
	// PhaseFinished: minMember Pods have succeeded. Final.
	PhaseFinished = string(xv1alpha1.PodGroupFinished)
)

// ReasonNameTooLong: the group's name is longer than the value of a label may be, so no Pod can name the group.
const ReasonNameTooLong = "NameTooLong"

// ReasonUndecodable: the group can't be decoded, so none of its Pods is placed.
const ReasonUndecodable = "Undecodable"

// FromSchedulerPlugins returns the Group for a PodGroup of scheduler-plugins. scheduleTimeoutSeconds is used as the
// time for which room is reserved for members to come. It does not limit how long a gang waits, because a waiting gang
// holds no room. If a PodGroup can't be decoded, no member is placed, and an event says so.
func FromSchedulerPlugins(object *unstructured.Unstructured) *Group {
	group := fromObject(SchedulerPlugins, object)
	var decoded xv1alpha1.PodGroup
	err := decode(object, &decoded, "minResources") // its quantities are read one by one
	group.Spec = Spec{
		Minimum:        podgroup.Minimum{Members: max(1, decoded.Spec.MinMember)},
		DisruptionMode: schedulingv1alpha1.DisruptGang,
		Provision: provisionOf(resourcesIn(object, "spec", "minResources"),
			time.Duration(ptr.Deref(decoded.Spec.ScheduleTimeoutSeconds, 0))*time.Second, object.GetAnnotations()),
		Staged: IsStaged(object),
		Halt:   haltOf(object),
	}
	group.Spec.Runtime, group.Warnings = runtimeOf(object, podgroup.Runtimes{}, false)
	group.Asked = group.Spec.Minimum.Members
	if err != nil {
		message := "the PodGroup does not decode, so none of its Pods is placed: " + text.Shorten(err.Error(), maxDecodeError)
		group.Spec.Halt = Halt{Reason: ReasonNotSupported, Message: message}
		group.Warnings = append(group.Warnings, Warning{Reason: ReasonUndecodable, Message: message})
	}
	if len(group.Key.Name) > validation.LabelValueMaxLength {
		group.Warnings = append(group.Warnings, Warning{Reason: ReasonNameTooLong, Always: true, Message: fmt.Sprintf(
			"Pods name their PodGroup by a label, whose value has at most %d characters: no Pod can be a member of this group", validation.LabelValueMaxLength)})
	}
	status := Status{
		Phase: string(decoded.Status.Phase), OccupiedBy: decoded.Status.OccupiedBy,
		Running: decoded.Status.Running, Succeeded: decoded.Status.Succeeded, Failed: decoded.Status.Failed,
	}
	group.Status = &status
	if slices.Contains([]string{PhaseRunning, PhaseFailed, PhaseFinished}, status.Phase) {
		// The object has no conditions. A scheduler that starts later knows from the phase that the gang was placed.
		group.Conditions = []schedulingv1alpha1.PodGroupCondition{
			{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonScheduled},
			{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionFalse, Reason: schedulingv1alpha1.ReasonScheduled},
		}
	}
	return group
}

// maxDecodeError limits the text of a decoding error in messages, in bytes.
const maxDecodeError = 512

// decode decodes an object except its metadata and some fields of its spec.
func decode(object *unstructured.Unstructured, into any, without ...string) error {
	fields := maps.Clone(object.Object)
	if spec, ok := fields["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		for _, field := range without {
			delete(spec, field)
		}
		fields["spec"] = spec
	}
	delete(fields, "metadata")
	encoded, err := json.Marshal(fields) // the converter of unstructured objects would truncate a number that is too large
	if err == nil {
		err = json.Unmarshal(encoded, into)
	}
	return err
}

// fromObject returns a Group with the fields that are read in the same way from the PodGroups of all other projects:
// identity, owner, and which program writes the phase.
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

// haltOf returns a Halt if the object is being deleted, so that no further member is placed; otherwise the zero Halt.
func haltOf(object *unstructured.Unstructured) Halt {
	if object.GetDeletionTimestamp() != nil {
		return haltOfDeleted
	}
	return Halt{}
}

// numberIn returns a number in an object, 0 if there is no valid one.
func numberIn(object *unstructured.Unstructured, path ...string) int32 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return untyped.Number(value)
}

// resourcesIn returns a list of resources in an object, nil if there is none.
func resourcesIn(object *unstructured.Unstructured, path ...string) provision.Amounts {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	list, _ := value.(map[string]any)
	return provision.Read(list)
}

// nextOfSchedulerPlugins returns the status of scheduler-plugins' PodGroup that follows from the present one.
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

// phaseOf returns the phase of a group that is not in a final phase.
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

// ownersOf returns the owners of a Pod in the format of the field occupiedBy.
func ownersOf(pod *corev1.Pod) string {
	owners := make([]string, len(pod.OwnerReferences))
	for i, owner := range pod.OwnerReferences {
		owners[i] = pod.Namespace + "/" + owner.Name
	}
	slices.Sort(owners)
	return strings.Join(owners, ",")
}
