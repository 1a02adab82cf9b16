// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// What Pods prefer comes after the group's topology, and before the packing order (ADR 67).

// maxPreferring and maxCompared limit the number of members times the number of nodes. Above maxPreferring, members are
// not placed by what they prefer. Above maxCompared, placements in different orders are not compared.
const (
	maxPreferring = 1 << 18
	maxCompared   = 1 << 15
)

// realize places the members of a plan. If members have preferences about other Pods, realize places them one by one in
// the plan's domains. It follows the plan if there are no such preferences, or if fewer members would get a place.
func (a *attempt) realize(ctx context.Context, v *verification, plan planner.Plan) (bool, error) {
	if a.complete && a.recalled == nil && a.prefersOthers() {
		said := maps.Clone(a.filters.rejections)
		if ok, err := a.realizePreferred(ctx, v, &plan); ok || err != nil {
			return ok, err
		}
		a.filters.rejections = said
	}
	return v.follow(ctx, plan)
}

// realizePreferred places the members of a plan by what they prefer. It tries a few orders of the members and uses the
// one with which the most preferences are fulfilled.
func (a *attempt) realizePreferred(ctx context.Context, v *verification, plan *planner.Plan) (bool, error) {
	members, nodes := v.membersOf(plan.Count), a.preferred(plan)
	size := len(members) * len(nodes)
	if size > maxPreferring {
		return false, nil
	}
	last := slices.Clone(members)
	slices.SortStableFunc(last, func(a, b member) int { return cmp.Compare(rankOf(a.class), rankOf(b.class)) })
	first := slices.Clone(members)
	slices.SortStableFunc(first, func(a, b member) int { return -cmp.Compare(rankOf(a.class), rankOf(b.class)) })
	orders := [][]member{last, members, first}
	if size > maxCompared {
		orders = orders[:1]
	}
	o := &oneByOne{verification: v, until: a.until.share(4)}
	place := func(order []member) (bool, error) {
		return o.place(ctx, order, nodes, func(left []member) bool { return len(left) == 0 })
	}
	best, most := -1, math.Inf(-1)
	for i, order := range orders {
		ok, err := place(order)
		if err != nil || ok && len(orders) == 1 {
			return ok, err
		}
		if !ok {
			continue
		}
		fulfilled, err := a.fulfilled(v, o.late)
		if err != nil {
			if err = o.unlessLate(err); err != nil {
				return false, err
			}
			v.undo(ctx)
			break
		}
		if fulfilled > most {
			best, most = i, fulfilled
		}
		if best == i && i == len(orders)-1 {
			return true, nil
		}
		v.undo(ctx)
	}
	if best < 0 {
		return false, nil
	}
	o.until = a.until // it has been placed so in time
	return place(orders[best])
}

// prefersOthers reports whether scores of nodes for the first class (members with equal needs) are not enough to
// respect all preferences. That is so if a class prefers to be near other Pods, away from them, or spread. It is also
// so if a class prefers certain nodes, or nodes have a taint PreferNoSchedule, and there are several classes or further
// levels of topology.
func (a *attempt) prefersOthers() bool {
	classes := a.found.classes
	several := len(classes) > 1 || len(a.found.gang.Levels) > len(a.gang.Group.Spec.Topology)
	return slices.ContainsFunc(classes, func(c *class) bool {
		affinity := c.info.Pod.Spec.Affinity
		return c.regard.prefers || several && (a.found.avoided || affinity != nil && affinity.NodeAffinity != nil &&
			len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
	})
}

// rankOf returns 1 for a class that prefers to be near other Pods, away from them or spread, else 0.
func rankOf(c *class) int {
	if c.regard.prefers {
		return 1
	}
	return 0
}

// preferred returns the nodes in the topology domains that a plan uses, for the levels of the group's own topology.
func (a *attempt) preferred(plan *planner.Plan) []int {
	used := make([]map[string]bool, len(a.gang.Group.Spec.Topology))
	for l := range used {
		used[l] = make(map[string]bool)
		for _, assignment := range plan.Assignments {
			used[l][a.found.world.Nodes[assignment.Node].Domains[l]] = true
		}
	}
	var nodes []int
	for n := range a.found.world.Nodes {
		if isIn(a.found.world.Nodes[n].Domains, used) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// isIn reports whether each of some domains is used, where `used` says which count.
func isIn(domains []string, used []map[string]bool) bool {
	for l := range used {
		if !used[l][domains[l]] {
			return false
		}
	}
	return true
}

// fulfilled returns a measure of how many of the placed members' preferences are fulfilled. A spread constraint that
// holds counts 1, as does a node without a taint to avoid. A term of affinity counts a hundredth of its weight. A term
// may require a look at all Pods, so fulfilled stops with the error of `late` as soon as `late` returns one.
func (a *attempt) fulfilled(v *verification, late func() error) (float64, error) {
	nodes, err := a.cluster.Snapshot.List()
	if err != nil {
		return 0, err
	}
	c := &counter{nodes: nodes, counts: make(map[string]map[string]int)}
	sum := 0.0
	for _, p := range v.placements {
		info, err := a.cluster.Snapshot.Get(p.Node)
		if err != nil {
			return 0, err
		}
		node := info.Node()
		if a.found.avoided && !isTainted(node, p.Pod, corev1.TaintEffectPreferNoSchedule) {
			sum++
		}
		if affinity := p.Pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
			if terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err == nil {
				sum += float64(terms.Score(node)) / 100
			}
		}
		for i := range p.Assumed.PreferredAffinityTerms {
			if err := late(); err != nil {
				return 0, err
			}
			if term := &p.Assumed.PreferredAffinityTerms[i]; c.others(&term.AffinityTerm, p.Pod, node) > 0 {
				sum += float64(term.Weight) / 100
			}
		}
		for i := range p.Assumed.PreferredAntiAffinityTerms {
			if err := late(); err != nil {
				return 0, err
			}
			if term := &p.Assumed.PreferredAntiAffinityTerms[i]; c.others(&term.AffinityTerm, p.Pod, node) == 0 {
				sum += float64(term.Weight) / 100
			}
		}
		sum += c.evenness(p.Pod, node)
	}
	return sum, nil
}

// isTainted reports whether a node has a taint that a Pod does not tolerate, with one of the given effects.
func isTainted(node *corev1.Node, pod *corev1.Pod, effects ...corev1.TaintEffect) bool {
	_, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		func(taint *corev1.Taint) bool { return slices.Contains(effects, taint.Effect) }, false)
	return found
}

// counter counts Pods in domains.
type counter struct {
	nodes  []fwk.NodeInfo
	counts map[string]map[string]int // by what is counted and domain
}

// in returns, by domain of a topology, the number of Pods that match. key is the topology's node label. Results are
// cached by name, so each combination of key and matches needs a name of its own.
func (c *counter) in(name, key string, matches func(pod *corev1.Pod) bool) map[string]int {
	if counts := c.counts[name]; counts != nil {
		return counts
	}
	counts := make(map[string]int)
	for _, node := range c.nodes {
		domain, has := node.Node().Labels[key]
		if !has {
			continue
		}
		counts[domain] += 0
		for _, info := range node.GetPods() {
			if matches(info.GetPod()) {
				counts[domain]++
			}
		}
	}
	c.counts[name] = counts
	return counts
}

// others returns how many Pods match a term in the domain of a Pod's node, not counting the Pod itself.
func (c *counter) others(term *fwk.AffinityTerm, pod *corev1.Pod, on *corev1.Node) int {
	domain, has := on.Labels[term.TopologyKey]
	if !has {
		return 0
	}
	matches := func(other *corev1.Pod) bool { return term.Matches(other, nil) }
	n := c.in("term "+term.TopologyKey+" "+term.Selector.String()+" "+strings.Join(sets.List(term.Namespaces), ","), term.TopologyKey, matches)[domain]
	if matches(pod) {
		n--
	}
	return n
}

// evenness returns a sum over a Pod's ScheduleAnyway constraints: 1 for a constraint that holds, and less than 1 the
// more a constraint's maxSkew is exceeded.
func (c *counter) evenness(pod *corev1.Pod, on *corev1.Node) float64 {
	sum := 0.0
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		domain, has := on.Labels[constraint.TopologyKey]
		if err != nil || !has || constraint.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		counts := c.in("spread "+constraint.TopologyKey+" "+selector.String(), constraint.TopologyKey, func(other *corev1.Pod) bool {
			return other.Namespace == pod.Namespace && selector.Matches(labels.Set(other.Labels))
		})
		least := slices.Min(slices.Collect(maps.Values(counts)))
		sum += min(1, float64(constraint.MaxSkew)/float64(max(1, counts[domain]-least)))
	}
	return sum
}
