// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// gang is a group with its members.
type gang struct {
	group *dialect.Group
	// all are the members, sorted by name. Some of them are also in one of these lists:
	//   - waiting: members that have no place and may get one
	//   - gated: members that wait for their scheduling gates
	//   - unserved: members that wait for another scheduler
	//   - ending: members that are being deleted
	//
	// placed counts members that have a place or have succeeded. nodes are the nodes of members that have not ended.
	all, waiting, gated, unserved, ending []*corev1.Pod
	placed                                podgroup.Tally
	nodes                                 []string
	// ended is how many members have succeeded or failed.
	ended int
	rank  queue.Rank
	// preemptsNobody reports that the gang never preempts others, because its group or its PriorityClass says so.
	preemptsNobody bool
}

// gangs returns the gangs of a Snapshot that have a group, by key. A Pod that names a group, but is not a member of it,
// is in no gang.
func gangs(s *Snapshot) map[dialect.Key]*gang {
	all := make(map[dialect.Key]*gang, len(s.Groups))
	for _, group := range s.Groups {
		all[group.Key] = &gang{group: group}
	}
	for _, pod := range s.Pods {
		key, named := s.Links.KeyOf(pod)
		if g := all[key]; named && g != nil && g.group.HasMember(pod) {
			g.add(pod, s.serves(pod.Spec.SchedulerName))
		}
	}
	for _, g := range all {
		if g.isStaged() {
			g.stage()
		}
		g.settle(s.Classes)
	}
	return all
}

// isStaged reports whether the gang starts in stages: its minimum includes members that are only created after others
// have run.
func (g *gang) isStaged() bool {
	return g.group.Spec.Staged || slices.ContainsFunc(g.all, func(pod *corev1.Pod) bool { return dialect.IsStaged(pod) })
}

// stage lowers the minimum to the number of members of the present stage.
func (g *gang) stage() {
	there := g.placed.Plus(podgroup.Tally{})
	for _, pod := range g.waiting {
		there.Add(g.group.Key.RoleOf(pod), 1)
	}
	group := *g.group
	group.Spec.Minimum = group.Spec.Minimum.AtMost(there)
	g.group = &group
}

// add adds a member to the gang. `served` reports whether this scheduler serves the member's scheduler name.
func (g *gang) add(pod *corev1.Pod, served bool) {
	g.all = append(g.all, pod)
	role := g.group.Key.RoleOf(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		g.ended++
		g.placed.Add(role, 1)
	case pod.Status.Phase == corev1.PodFailed:
		g.ended++
	case pod.DeletionTimestamp != nil:
		g.ending = append(g.ending, pod) // it gives up its place
	case pod.Spec.NodeName != "":
		g.placed.Add(role, 1)
		g.nodes = append(g.nodes, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		g.gated = append(g.gated, pod)
	case !served:
		g.unserved = append(g.unserved, pod)
	default:
		g.waiting = append(g.waiting, pod)
	}
}

// settle sorts the members and sets the gang's rank. The rank has the highest priority among members that wait or are
// placed, but at most that of the group's PriorityClass.
func (g *gang) settle(classes map[string]PriorityClass) {
	byName := func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	}
	for _, pods := range [][]*corev1.Pod{g.all, g.waiting, g.gated, g.unserved, g.ending} {
		slices.SortFunc(pods, byName)
	}
	g.rank = queue.Rank{Key: g.group.Key, Created: g.group.Created}
	first := true
	for _, pod := range g.all {
		if hasEnded(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if p := corev1helpers.PodPriority(pod); first || p > g.rank.Priority {
			g.rank.Priority, first = p, false
		}
	}
	spec := &g.group.Spec
	if spec.Priority != nil {
		g.rank.Priority = min(g.rank.Priority, *spec.Priority)
	} else if class, ok := classes[spec.PriorityClassName]; ok && spec.PriorityClassName != "" {
		g.rank.Priority = min(g.rank.Priority, class.Value)
	}
	g.preemptsNobody = spec.PreemptsNobody || classes[spec.PriorityClassName].PreemptsNobody
}

// hasEnded reports whether a Pod has succeeded or failed.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isPlaced reports whether the minimum has a place.
func (g *gang) isPlaced() bool {
	return g.group.HeldBy(g.placed)
}

// placedPods returns the members that are on nodes and have not ended.
func (g *gang) placedPods() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(g.all), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" || hasEnded(pod) || pod.DeletionTimestamp != nil
	})
}

// schedulerName returns the scheduler name of the first waiting member, "" if no member waits.
func (g *gang) schedulerName() string {
	if len(g.waiting) == 0 {
		return ""
	}
	return g.waiting[0].Spec.SchedulerName
}

// isComplete reports whether the minimum would hold if all waiting members had a place.
func (g *gang) isComplete() bool {
	all := g.placed.Plus(podgroup.Tally{})
	for _, pod := range g.waiting {
		all.Add(g.group.Key.RoleOf(pod), 1)
	}
	return g.group.HeldBy(all)
}

// isInLine reports whether the gang is in the queue.
func (g *gang) isInLine() bool {
	return len(g.waiting) > 0 && g.isComplete() && !g.group.IsHalted() && !g.group.Spec.Loose
}

// mayPreempt reports whether neither the group nor its class nor a member forbids preemption.
func (g *gang) mayPreempt() bool {
	return !g.preemptsNobody && !slices.ContainsFunc(g.waiting, func(pod *corev1.Pod) bool {
		return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	})
}

// minima returns what the gang still needs, in all and of each role.
func (g *gang) minima() (all int, roles map[string]int) {
	minimum := &g.group.Spec.Minimum
	roles = make(map[string]int, len(minimum.Roles))
	for role, least := range minimum.Roles {
		roles[role] = max(0, int(least-g.placed.Roles[role]))
	}
	return max(0, int(minimum.Members-g.placed.Total)), roles
}
