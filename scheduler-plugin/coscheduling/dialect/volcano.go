// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// volcanoTask is the annotation or label that names the role of a Pod in a group of Volcano.
const volcanoTask = "volcano.sh/task-spec"

// The phases of Volcano's PodGroup, beside PhasePending and PhaseRunning.
const (
	// PhaseInqueue: the group's Pods may be created. Some tools create no Pods while the phase is PhasePending.
	PhaseInqueue = "Inqueue"
	// PhaseUnknown: some members run, and the gang is unschedulable. Volcano's Jobs have policies for this.
	PhaseUnknown = "Unknown"
	// PhaseCompleted: minMember members were placed, and all placed members have ended.
	PhaseCompleted = "Completed"
)

// maxConditions is how many conditions of a group are read.
const maxConditions = 20

// FromVolcano returns a function that converts Volcano's PodGroups to Groups. tiers are the node labels for the tiers
// of Volcano's HyperNodes. Invalid fields are treated as missing. As in Volcano, the minima of roles are ignored if
// their sum is more than minMember.
func FromVolcano(tiers []configv1alpha1.Tier) func(object *unstructured.Unstructured) *Group {
	return func(object *unstructured.Unstructured) *Group {
		group := fromVolcano(object)
		var obstacle string
		group.Spec.Topology, obstacle = topologyOfVolcano(object.Object, tiers)
		heedSubgroups(group, object, obstacle)
		return group
	}
}

// FromVolcanoWithoutTiers is FromVolcano for callers that do not know the node labels of tiers. The Group has no
// topology. asksForTiers reports whether spec.networkTopology asks for a topology, so that the Group lacks it.
func FromVolcanoWithoutTiers(object *unstructured.Unstructured) (group *Group, asksForTiers bool) {
	group = fromVolcano(object)
	heedSubgroups(group, object, "")
	topology, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "networkTopology")
	fields, _ := topology.(map[string]any)
	_, limited := tierIn(fields)
	return group, limited || fields["mode"] == "soft"
}

// heedSubgroups adds the warnings about the subgroups of a Volcano PodGroup to its Group. It halts the Group if a
// subgroup policy can't be met, or if obstacle is not empty.
func heedSubgroups(g *Group, object *unstructured.Unstructured, obstacle string) {
	warnings, ofSubgroups := subgroupsOf(object.Object)
	g.Warnings = append(g.Warnings, warnings...)
	if obstacle = cmp.Or(obstacle, ofSubgroups); obstacle != "" {
		g.Spec.Halt = Halt{Reason: ReasonNotSupported, Message: obstacle}
	}
}

func fromVolcano(object *unstructured.Unstructured) *Group {
	group := fromObject(Volcano, object)
	group.Asked = numberIn(object, "spec", "minMember")
	group.Spec = Spec{
		Minimum:        podgroup.Minimum{Members: max(1, group.Asked), Roles: rolesOfVolcano(object, group.Asked)},
		DisruptionMode: schedulingv1alpha1.DisruptGang,
		Provision:      provisionOf(resourcesIn(object, "spec", "minResources"), 0, object.GetAnnotations()),
		Staged:         IsStaged(object),
		Halt:           haltOf(object),
	}
	group.Spec.Runtime, group.Warnings = runtimeOf(object, podgroup.Runtimes{}, false)
	group.Spec.PriorityClassName, _, _ = unstructured.NestedString(object.Object, "spec", "priorityClassName")
	status := Status{
		Running:    numberIn(object, "status", "running"),
		Succeeded:  numberIn(object, "status", "succeeded"),
		Failed:     numberIn(object, "status", "failed"),
		Conditions: conditionsIn(object, group.Created),
	}
	status.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	group.Status, group.Conditions = &status, status.Conditions
	return group
}

// maxRoles limits how many roles of a Volcano PodGroup may have a minimum. If there are more, the minima of all roles
// are ignored. Volcano's API has no such limit; 256 is the limit of Lockstep's own PodGroups.
const maxRoles = 256

// rolesOfVolcano returns the minima of roles, nil if none count.
func rolesOfVolcano(object *unstructured.Unstructured, least int32) map[string]int32 {
	given, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "minTaskMember")
	minima, ok := given.(map[string]any)
	if err != nil || !found || !ok || len(minima) > maxRoles {
		return nil
	}
	roles, sum := make(map[string]int32, len(minima)), int64(0)
	for role := range minima {
		if n := numberIn(object, "spec", "minTaskMember", role); n > 0 {
			roles[role] = n
			sum += int64(n)
		}
	}
	if len(roles) == 0 || sum > int64(least) {
		return nil
	}
	return roles
}

// conditionsIn returns the newest condition of each type of a Volcano object. Volcano never removes conditions, so
// there may be several of one type. A condition that is older than the group gets the group's creation time.
func conditionsIn(object *unstructured.Unstructured, created time.Time) []schedulingv1alpha1.PodGroupCondition {
	list := listIn(object.Object, "status", "conditions")
	var conditions []schedulingv1alpha1.PodGroupCondition
	for _, entry := range list[max(0, len(list)-maxConditions):] {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		read := func(name string) string { text, _ := fields[name].(string); return text }
		c := schedulingv1alpha1.PodGroupCondition{
			Type: read("type"), Status: metav1.ConditionStatus(read("status")), TransitionID: read("transitionID"),
			Reason: read("reason"), Message: read("message"), LastTransitionTime: metav1.NewTime(created),
		}
		if at, err := time.Parse(time.RFC3339, read("lastTransitionTime")); err == nil && at.After(created) {
			c.LastTransitionTime = metav1.NewTime(at)
		}
		i := slices.IndexFunc(conditions, func(other schedulingv1alpha1.PodGroupCondition) bool { return other.Type == c.Type })
		switch {
		case i < 0:
			conditions = append(conditions, c)
		case !c.LastTransitionTime.Before(&conditions[i].LastTransitionTime):
			conditions[i] = c
		}
	}
	return conditions
}

// conditionsOfVolcano returns conditions in the form of Volcano's objects.
func conditionsOfVolcano(conditions []schedulingv1alpha1.PodGroupCondition) []map[string]any {
	list := make([]map[string]any, 0, len(conditions))
	for _, c := range conditions {
		fields := map[string]any{"type": c.Type, "status": c.Status}
		for name, text := range map[string]string{"transitionID": c.TransitionID, "reason": c.Reason, "message": c.Message} {
			if text != "" {
				fields[name] = text
			}
		}
		if !c.LastTransitionTime.IsZero() {
			fields["lastTransitionTime"] = c.LastTransitionTime
		}
		list = append(list, fields)
	}
	return list
}

// reasonOfVolcano returns the reason that a condition has in a PodGroup of Volcano. Volcano has no reasons for failed
// or slow bindings and for unsupported requests; these become NotEnoughResources.
func reasonOfVolcano(reason string) string {
	if reason == schedulingv1alpha1.ReasonBindingFailed || reason == schedulingv1alpha1.ReasonBinding || reason == ReasonNotSupported {
		return schedulingv1alpha1.ReasonNotEnoughResources
	}
	return reason
}

// nextOfVolcano returns the status of Volcano's PodGroup that follows from the present one.
func nextOfVolcano(now Status, asked int32, facts Facts) Status {
	pods := facts.Pods
	next := Status{
		Phase:   phaseOfVolcano(now.Phase, asked, facts),
		Running: pods.Running - pods.Ending, Succeeded: pods.Succeeded, Failed: pods.Failed,
		Conditions: slices.Clone(facts.Conditions),
	}
	for i := range next.Conditions {
		next.Conditions[i].Reason = reasonOfVolcano(next.Conditions[i].Reason)
	}
	for _, c := range now.Conditions {
		if !slices.ContainsFunc(next.Conditions, func(other schedulingv1alpha1.PodGroupCondition) bool { return other.Type == c.Type }) {
			next.Conditions = append(next.Conditions, c) // another component's
		}
	}
	return next
}

// phaseOfVolcano returns the phase that Volcano would set, with two differences:
//   - A group without room becomes Inqueue at once, and not Pending, so that its Pods are created and wait.
//   - The phase becomes Unknown only if the gang was found unschedulable in its present state, and then stays Unknown
//     until something else is found. The reason is that a policy may restart a Job at each change to Unknown.
func phaseOfVolcano(before string, asked int32, facts Facts) string {
	pods := facts.Pods
	unschedulable := facts.Lacks || facts.Undecided && before == PhaseUnknown
	switch {
	case pods.Running > pods.Ending && unschedulable:
		return PhaseUnknown
	case pods.Placed >= asked && pods.Placed == pods.Succeeded+pods.Failed:
		return PhaseCompleted
	case pods.Placed >= asked:
		return PhaseRunning
	default:
		return PhaseInqueue
	}
}
