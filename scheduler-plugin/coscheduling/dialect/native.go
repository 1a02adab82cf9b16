// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// nativeAlpha is the version of Kubernetes' PodGroups that an API server of 1.36 serves. Its
// condition has another name, and its disruptionMode is a word.
const nativeAlpha = "v1alpha2"

// nativeLink is the name of the PodGroup of Kubernetes that a Pod names, empty if it names none.
func nativeLink(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}

// FromNative is the Group that a PodGroup of Kubernetes stands for. What can't be read counts as
// not said.
func FromNative(object *unstructured.Unstructured) *Group {
	group := fromObject(Native, object)
	group.Version = object.GroupVersionKind().Version
	group.Spec = Spec{
		Minimum:        podgroup.Minimum{Members: max(1, numberIn(object, "spec", "schedulingPolicy", "gang", "minCount"))},
		Priority:       priorityIn(object),
		PreemptsNobody: textIn(object, "spec", "preemptionPolicy") == string(corev1.PreemptNever),
		DisruptionMode: schedulingv1alpha1.DisruptPod,
		Halt:           haltOfNative(object),
	}
	group.Spec.Runtime, group.Warnings = runtimeOf(object, podgroup.Runtimes{}, false)
	group.Spec.PriorityClassName = textIn(object, "spec", "priorityClassName")
	if takesAll(object) {
		group.Spec.DisruptionMode = schedulingv1alpha1.DisruptGang
	}
	if key := topologyIn(object); key != "" {
		group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: key, Mode: schedulingv1alpha1.TopologyRequired}}
	}
	group.Spec.Loose = isBasic(object) && group.Spec.Topology == nil && !group.IsHalted()
	native := nativeStatusOf(object)
	group.Status, group.Conditions = &Status{Native: &native}, native.said()
	return group
}

// haltOfNative is why no member of a group is to be placed, if that is so.
func haltOfNative(object *unstructured.Unstructured) Halt {
	claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourceClaims")
	switch {
	case object.GetDeletionTimestamp() != nil:
		return haltOfDeleted
	case textIn(object, "spec", "parentCompositePodGroupName") != "":
		return Halt{Reason: ReasonNotSupported, Message: "lockstep-scheduler does not support spec.parentCompositePodGroupName: " +
			"without it the group is placed on its own"}
	case len(claims) > 0:
		return Halt{Reason: ReasonNotSupported, Message: "lockstep-scheduler does not support spec.resourceClaims: " +
			"a claim that all Pods share is one that each of them names in its own spec.resourceClaims"}
	default:
		return Halt{}
	}
}

// isBasic says whether the policy of a group is the one that asks for nothing.
func isBasic(object *unstructured.Unstructured) bool {
	_, gang, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "schedulingPolicy", "gang")
	_, basic, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "schedulingPolicy", "basic")
	return basic && !gang
}

// takesAll says whether preemption may take a group as a whole only.
func takesAll(object *unstructured.Unstructured) bool {
	if textIn(object, "spec", "disruptionMode") == "PodGroup" {
		return true
	}
	_, all, _ := unstructured.NestedMap(object.Object, "spec", "disruptionMode", "all")
	return all
}

// topologyIn is the label whose values are the domains of which one is to have all members, empty
// for none. There is one at most.
func topologyIn(object *unstructured.Unstructured) string {
	constraints, _, _ := unstructured.NestedSlice(object.Object, "spec", "schedulingConstraints", "topology")
	if len(constraints) == 0 {
		return ""
	}
	first, _ := constraints[0].(map[string]any)
	key, _ := first["key"].(string)
	return key
}

// priorityIn is the priority of a group, nil if it has none.
func priorityIn(object *unstructured.Unstructured) *int32 {
	if _, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "priority"); err != nil || !found {
		return nil
	}
	n := signedIn(object, "spec", "priority")
	return &n
}

// signedIn is a number of an object that may be negative, 0 if there is none or it can't be one.
func signedIn(object *unstructured.Unstructured, path ...string) int32 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	n, _ := value.(int64)
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// NativeStatus are the conditions of a PodGroup of Kubernetes that this scheduler writes.
type NativeStatus struct {
	// Scheduled says whether the minimum was placed once; nil if that is not said yet. It never
	// goes back to False.
	Scheduled *metav1.Condition
	// Disrupted says that the group was preempted as a whole; nil if it was not, or was placed
	// again since.
	Disrupted *metav1.Condition
}

// The conditions of PodGroups of Kubernetes, and their reasons.
const (
	nativeScheduled      = "PodGroupInitiallyScheduled"
	nativeAlphaScheduled = "PodGroupScheduled"
	nativeDisrupted      = "DisruptionTarget"

	nativeReasonScheduled     = "Scheduled"
	nativeReasonUnschedulable = "Unschedulable"
	nativeReasonError         = "SchedulerError"
	nativeReasonPreempted     = "PreemptionByScheduler"
)

// scheduledType is the type of the condition that says whether a group was placed, in a version.
func scheduledType(version string) string {
	if version == nativeAlpha {
		return nativeAlphaScheduled
	}
	return nativeScheduled
}

// nativeStatusOf is what an object says.
func nativeStatusOf(object *unstructured.Unstructured) NativeStatus {
	kind := scheduledType(object.GroupVersionKind().Version)
	return NativeStatus{Scheduled: conditionIn(object, kind), Disrupted: conditionIn(object, nativeDisrupted)}
}

// said is what the status says in the words of Lockstep's conditions, so that a scheduler knows
// what another one has told before it.
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

// reasonOf is Lockstep's reason of a condition that is False, and its message. The condition has
// few reasons of its own, so Lockstep's stands in front of the message.
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

// next is the status that follows from the present one and from what Lockstep's conditions say of
// the gang now, if they say anything.
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

// scheduled is the condition that says whether the group was placed once.
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

// saysSame says whether two statuses say the same. When it came to be does not matter.
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

// apply is the object that has the group say this by server-side apply to its status. What it does
// not say any more goes away, and conditions of others stay. It is refused if the group has changed since it had the
// resource version.
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

// conditionIn is the condition of a type that an object has, nil if it has none.
func conditionIn(object *unstructured.Unstructured, kind string) *metav1.Condition {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, _ := entry.(map[string]any)
		if fields["type"] != kind {
			continue
		}
		c := &metav1.Condition{Type: kind}
		status, _ := fields["status"].(string)
		c.Status = metav1.ConditionStatus(status)
		c.Reason, _ = fields["reason"].(string)
		c.Message, _ = fields["message"].(string)
		c.ObservedGeneration, _ = fields["observedGeneration"].(int64)
		at, _ := fields["lastTransitionTime"].(string)
		if err := c.LastTransitionTime.UnmarshalQueryParameter(at); err != nil {
			c.LastTransitionTime = metav1.Time{}
		}
		return c
	}
	return nil
}

// textIn is a text of an object, empty if there is none.
func textIn(object *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, path...)
	return text
}
