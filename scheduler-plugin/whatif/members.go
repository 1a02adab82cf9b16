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
	// all are the members, by name. Waiting of them have no place and may get one, gated wait for
	// their scheduling gates, unserved wait for another scheduler, ending are being deleted, placed hold one or have
	// succeeded, and nodes are where those are that have not ended.
	all, waiting, gated, unserved, ending []*corev1.Pod
	placed                                podgroup.Tally
	nodes                                 []string
	// ended of them have succeeded or failed.
	ended int
	rank  queue.Rank
	// preemptsNobody says that the group, or its class, waits where it would evict others.
	preemptsNobody bool
}

// gangs are those of a Snapshot that have a group, by key. Pods that name a group and are no
// members of it are in none.
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

// isStaged says whether the gang's minimum counts members which only come after others have run.
func (g *gang) isStaged() bool {
	return g.group.Spec.Staged || slices.ContainsFunc(g.all, func(pod *corev1.Pod) bool { return dialect.IsStaged(pod) })
}

// stage has no more members be needed than there are of the present stage.
func (g *gang) stage() {
	there := g.placed.Plus(podgroup.Tally{})
	for _, pod := range g.waiting {
		there.Add(g.group.Key.RoleOf(pod), 1)
	}
	group := *g.group
	group.Spec.Minimum = group.Spec.Minimum.AtMost(there)
	g.group = &group
}

// add has a gang have a member, whose scheduler is served here or not.
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
		g.ending = append(g.ending, pod) // it gives its place up
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

// settle orders members, and ranks the gang by them: the highest priority among those that wait or
// are placed, and no more than that of its PriorityClass.
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

// hasEnded says whether a Pod has succeeded or failed.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isPlaced says whether the minimum has a place.
func (g *gang) isPlaced() bool {
	return g.group.HeldBy(g.placed)
}

// placedPods are the members that are on nodes and have not ended.
func (g *gang) placedPods() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(g.all), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" || hasEnded(pod) || pod.DeletionTimestamp != nil
	})
}

// schedulerName is that of the first member that waits; empty if it has none yet.
func (g *gang) schedulerName() string {
	if len(g.waiting) == 0 {
		return ""
	}
	return g.waiting[0].Spec.SchedulerName
}

// isComplete says whether the minimum would hold if all that waits had a place.
func (g *gang) isComplete() bool {
	all := g.placed.Plus(podgroup.Tally{})
	for _, pod := range g.waiting {
		all.Add(g.group.Key.RoleOf(pod), 1)
	}
	return g.group.HeldBy(all)
}

// isInLine says whether the gang waits for a cycle.
func (g *gang) isInLine() bool {
	return len(g.waiting) > 0 && g.isComplete() && !g.group.IsHalted() && !g.group.Spec.Loose
}

// mayPreempt says whether neither the group nor its class nor a member forbids it.
func (g *gang) mayPreempt() bool {
	return !g.preemptsNobody && !slices.ContainsFunc(g.waiting, func(pod *corev1.Pod) bool {
		return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	})
}

// minima are what the gang still needs, in all and of each role.
func (g *gang) minima() (all int, roles map[string]int) {
	minimum := &g.group.Spec.Minimum
	roles = make(map[string]int, len(minimum.Roles))
	for role, least := range minimum.Roles {
		roles[role] = max(0, int(least-g.placed.Roles[role]))
	}
	return max(0, int(minimum.Members-g.placed.Total)), roles
}
