// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// nativeAlpha is the version of Kubernetes' PodGroup API that Kubernetes 1.36 serves. In this version the condition has
// another name, and disruptionMode is a string.
const nativeAlpha = "v1alpha2"

// nativeLink returns the name of Kubernetes' PodGroup that a Pod names, "" if none.
func nativeLink(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}

// FromNative returns the Group for a PodGroup of Kubernetes.
func FromNative(object *unstructured.Unstructured) *Group {
	group := fromObject(Native, object)
	group.Version = object.GroupVersionKind().Version
	var decoded schedulingv1beta1.PodGroup
	mode, isAlpha, _ := unstructured.NestedString(object.Object, "spec", "disruptionMode")
	without := []string{}
	if isAlpha {
		without = append(without, "disruptionMode")
	}
	_ = decode(object, &decoded, without...) // the API server validates the type
	spec := &decoded.Spec
	group.Spec = Spec{
		Minimum:           podgroup.Minimum{Members: 1},
		PriorityClassName: spec.PriorityClassName,
		Priority:          spec.Priority,
		PreemptsNobody:    ptr.Deref(spec.PreemptionPolicy, "") == schedulingv1beta1.PreemptNever,
		DisruptionMode:    schedulingv1alpha1.DisruptPod,
		Halt:              haltOf(object),
	}
	group.Spec.Runtime, group.Warnings = runtimeOf(object, podgroup.Runtimes{}, false)
	if gang := spec.SchedulingPolicy.Gang; gang != nil {
		group.Spec.Minimum.Members = max(1, gang.MinCount)
	}
	if mode == "PodGroup" || spec.DisruptionMode != nil && spec.DisruptionMode.All != nil {
		group.Spec.DisruptionMode = schedulingv1alpha1.DisruptGang
	}
	if constraints := spec.SchedulingConstraints; constraints != nil && len(constraints.Topology) > 0 && constraints.Topology[0].Key != "" { // at most one is allowed
		group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: constraints.Topology[0].Key, Mode: schedulingv1alpha1.TopologyRequired}}
	}
	switch {
	case group.IsHalted():
	case ptr.Deref(spec.ParentCompositePodGroupName, "") != "":
		group.Spec.Halt = Halt{Reason: ReasonNotSupported, Message: "lockstep-scheduler does not support spec.parentCompositePodGroupName: " +
			"without it the group is placed on its own"}
	case len(spec.ResourceClaims) > 0:
		group.Spec.Halt = Halt{Reason: ReasonNotSupported, Message: "lockstep-scheduler does not support spec.resourceClaims: " +
			"a claim that all Pods share is one that each of them names in its own spec.resourceClaims"}
	}
	policy := &spec.SchedulingPolicy
	group.Spec.Loose = policy.Basic != nil && policy.Gang == nil && group.Spec.Topology == nil && !group.IsHalted()
	native := NativeStatus{Scheduled: meta.FindStatusCondition(decoded.Status.Conditions, scheduledType(group.Version)),
		Disrupted: meta.FindStatusCondition(decoded.Status.Conditions, nativeDisrupted)}
	group.Status, group.Conditions = &Status{Native: &native}, native.said()
	return group
}

// NativeStatus are the conditions of Kubernetes' PodGroup that this scheduler writes.
type NativeStatus struct {
	// Scheduled is the condition that the minimum was placed at some time; nil if not known yet. It never goes back to
	// False.
	Scheduled *metav1.Condition
	// Disrupted is the condition that the group was preempted as a whole. It is nil if the group was not preempted, or
	// was placed again since.
	Disrupted *metav1.Condition
}

// The conditions of Kubernetes' PodGroups, and their reasons.
const (
	nativeScheduled      = schedulingv1beta1.PodGroupInitiallyScheduled
	nativeAlphaScheduled = "PodGroupScheduled"
	nativeDisrupted      = schedulingv1beta1.DisruptionTarget

	nativeReasonScheduled     = "Scheduled"
	nativeReasonUnschedulable = schedulingv1beta1.PodGroupReasonUnschedulable
	nativeReasonError         = schedulingv1beta1.PodGroupReasonSchedulerError
	nativeReasonPreempted     = schedulingv1beta1.PodGroupReasonPreemptionByScheduler
)

// scheduledType returns the type of the condition that says whether a group was placed. The type depends on the version
// of the API.
func scheduledType(version string) string {
	if version == nativeAlpha {
		return nativeAlphaScheduled
	}
	return nativeScheduled
}

// said returns the status in the form of Lockstep's conditions, so that a scheduler knows what an earlier scheduler has
// reported.
func (s *NativeStatus) said() []schedulingv1alpha1.PodGroupCondition {
	c := s.Scheduled
	if c == nil || c.Status == metav1.ConditionUnknown {
		return nil
	}
	reason, message := schedulingv1alpha1.ReasonScheduled, c.Message
	scheduled, unschedulable := metav1.ConditionTrue, metav1.ConditionFalse
	if c.Status == metav1.ConditionFalse {
		scheduled, unschedulable = unschedulable, scheduled
		reason, message = reasonOf(c)
	}
	both := []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionScheduled, Status: scheduled},
		{Type: schedulingv1alpha1.ConditionUnschedulable, Status: unschedulable},
	}
	for i := range both {
		both[i].Reason, both[i].Message, both[i].LastTransitionTime = reason, message, c.LastTransitionTime
	}
	return both
}

// reasonOf returns the reason that Lockstep gave for a condition that is False, and the message. Kubernetes' condition
// allows few reasons, so Lockstep's own reason is at the beginning of the condition's message.
func reasonOf(c *metav1.Condition) (reason, message string) {
	if c.Reason == nativeReasonError {
		return ReasonNotSupported, c.Message
	}
	reason, message, found := strings.Cut(c.Message, ": ")
	if !found || strings.Contains(reason, " ") {
		return schedulingv1alpha1.ReasonNotEnoughResources, c.Message
	}
	return reason, message
}

// next returns the status that follows from the present one and from Lockstep's conditions of the gang, if there are
// any.
func (s *NativeStatus) next(group *Group, facts Facts) NativeStatus {
	next := NativeStatus{Scheduled: s.Scheduled}
	for i := range facts.Conditions {
		if facts.Conditions[i].Type == schedulingv1alpha1.ConditionScheduled {
			next.Scheduled = s.scheduled(group, &facts.Conditions[i])
		}
	}
	if !facts.Preempted && (facts.Placed || s.Disrupted == nil) {
		return next
	}
	if next.Disrupted = s.Disrupted; s.Disrupted == nil || s.Disrupted.Status != metav1.ConditionTrue {
		next.Disrupted = &metav1.Condition{Type: nativeDisrupted, Status: metav1.ConditionTrue, Reason: nativeReasonPreempted,
			Message: "preempted for Pods of a higher priority", LastTransitionTime: metav1.NewTime(facts.Now), ObservedGeneration: group.Generation}
	}
	return next
}

// scheduled returns the condition that says whether the group was ever placed.
func (s *NativeStatus) scheduled(group *Group, said *schedulingv1alpha1.PodGroupCondition) *metav1.Condition {
	if s.Scheduled != nil && s.Scheduled.Status == metav1.ConditionTrue {
		return s.Scheduled
	}
	c := &metav1.Condition{Type: scheduledType(group.Version), Status: said.Status, Reason: nativeReasonScheduled, Message: said.Message,
		LastTransitionTime: said.LastTransitionTime, ObservedGeneration: group.Generation}
	if said.Status != metav1.ConditionTrue {
		c.Reason, c.Message = nativeReasonUnschedulable, said.Reason+": "+said.Message
	}
	if said.Reason == ReasonNotSupported {
		c.Reason, c.Message = nativeReasonError, said.Message
	}
	return c
}

// saysSame reports whether two statuses are equal, apart from transition times.
func (s *NativeStatus) saysSame(other *NativeStatus) bool {
	if s == nil || other == nil {
		return s == other
	}
	return saysSame(s.Scheduled, other.Scheduled) && saysSame(s.Disrupted, other.Disrupted)
}

func saysSame(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// apply returns the object for a server-side apply of this status. With it, the API server removes conditions that this
// scheduler no longer sets, and keeps the conditions of other programs. The API server refuses the request if the
// group's resource version has changed.
func (s *NativeStatus) apply(group *Group, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(group.Kind())
	object.SetNamespace(group.Key.Namespace)
	object.SetName(group.Key.Name)
	object.SetUID(group.UID)
	object.SetResourceVersion(version)
	var conditions []any
	for _, c := range []*metav1.Condition{s.Scheduled, s.Disrupted} {
		if c != nil {
			conditions = append(conditions, map[string]any{
				"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
				"lastTransitionTime": c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"), "observedGeneration": c.ObservedGeneration,
			})
		}
	}
	object.Object["status"] = map[string]any{"conditions": conditions}
	return object
}
