// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// pool is the work that a gang might preempt or wait for.
type pool struct {
	victims.Prey
	infos []fwk.PodInfo // of its Pods
	// leaving are Pods that are ending already. yielding reports that the gang might preempt some of them, too.
	leaving  []fwk.PodInfo
	yielding bool
	// soon are the Pods that the gang might wait for, the earliest end first, as indexes in seen.
	soon []soon
	seen []seen
	// spared reports that the pool leaves out Pods that may be in the pool another time. Such a Pod can't be evicted
	// now, does not end, or may be a member of a gang that is not known yet.
	spared bool
	// again is when the first of the Pods that can't be evicted now may be evicted; zero if there are none.
	again time.Time
}

// marked returns for each Pod of the pool whether the Pod is among the given ones, which are indexes in infos.
func (p *pool) marked(pods []int) []bool {
	marked := make([]bool, len(p.infos))
	for _, pod := range pods {
		marked[pod] = true
	}
	return marked
}

// prey reports whether a gang may preempt a Pod. `of` is the Pod's gang, nil if none.
type prey func(pod *corev1.Pod, of *gangs.Standing) bool

// outranked returns all work of lower rank.
func outranked(by queue.Rank) prey {
	return func(pod *corev1.Pod, of *gangs.Standing) bool {
		if of != nil {
			return of.Rank.Priority < by.Priority
		}
		return corev1helpers.PodPriority(pod) < by.Priority
	}
}

// outranksSome reports whether some Pod on a node, or some gang with Pods on nodes, may have a lower priority than the
// gang. If all work has one priority, outranksSome saves a look at all Pods. Gangs are asked, too, because the priority
// of a gang may be lower than that of its Pods.
func (s *seeker) outranksSome() (bool, error) {
	nodes, err := s.cluster.Snapshot.List()
	if err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	lowest := s.cluster.LowestPlaced()
	for _, answer := range s.cluster.Passes.lowest.of(nodes, func(int32) bool { return false }, s.lowestOn) {
		lowest = min(lowest, answer.is)
	}
	return lowest < s.gang.Rank.Priority, nil
}

// lowestOn returns the lowest priority of the Pods on a node, without Pods that are in the snapshot only because of
// reservations.
func (s *seeker) lowestOn(node fwk.NodeInfo) int32 {
	lowest := int32(math.MaxInt32)
	for _, info := range node.GetPods() {
		if pod := info.GetPod(); !s.cluster.ahead.assumed.Has(pod.UID) {
			lowest = min(lowest, corev1helpers.PodPriority(pod))
		}
	}
	return lowest
}

// brokenBehind returns the gangs behind another gang that are broken: they have lost members, lack their minimum, and
// have found no room for replacements since `before`. Such gangs do no work, and wait just like the gang ahead.
func brokenBehind(ahead queue.Rank, before time.Time) prey {
	return func(_ *corev1.Pod, of *gangs.Standing) bool {
		return of != nil && !of.WaitsSince.IsZero() && of.WaitsSince.Before(before) && ahead.Compare(of.Rank) < 0
	}
}

// gathering is a pool in the making.
type gathering struct {
	*pool
	cluster   *Cluster
	standings map[dialect.Key]*gangs.Standing
	may       prey
	// whole has, by gang, the Pods of gangs that are disrupted as a whole. The gangs in stay have a Pod that can't be
	// evicted.
	whole map[dialect.Key][]fwk.PodInfo
	stay  sets.Set[dialect.Key]
}

// gather collects the Pods that the gang may preempt, and those that are ending already.
func (s *seeker) gather(may prey) (*pool, error) {
	g := gathering{pool: &pool{Prey: victims.Prey{Now: s.sight.now, MinRuntime: s.cluster.MinRuntime}}, cluster: s.cluster,
		standings: s.sight.standings, may: may, whole: make(map[dialect.Key][]fwk.PodInfo), stay: sets.New[dialect.Key]()}
	for i := range s.sight.all {
		if one := &s.sight.all[i]; one.state != expected {
			g.add(one)
		}
	}
	g.addGangs()
	if err := s.countViolations(g.pool); err != nil {
		return nil, err
	}
	return g.pool, nil
}

// add adds a Pod if the gang may preempt the Pod or the Pod is ending.
func (g *gathering) add(one *seen) {
	pod := one.info.GetPod()
	takes := !one.own && g.may(pod, one.of)
	if takes && one.of == nil && g.cluster.MayBeMember(pod) {
		takes, g.spared = false, true
	}
	switch {
	case one.state == leaving:
		g.leaving = append(g.leaving, one.info)
		g.yielding = g.yielding || takes
	case !takes:
	case one.state == overstaying:
		g.spared = true
	default:
		g.addVictim(one.info, one.of)
	}
}

// addVictim adds a Pod that the gang may preempt. A Pod of a gang that is disrupted as a whole is added later; see
// addGangs.
func (g *gathering) addVictim(info fwk.PodInfo, of *gangs.Standing) {
	pod, goesWhole := info.GetPod(), of != nil && of.GoesWhole
	if until := g.cluster.Evictions.RefusedUntil(pod, g.Now); !until.IsZero() {
		g.spared, g.again = true, times.Sooner(g.again, until)
		if goesWhole {
			g.stay.Insert(of.Rank.Key)
		}
		return
	}
	if goesWhole {
		g.whole[of.Rank.Key] = append(g.whole[of.Rank.Key], info)
		return
	}
	priority := corev1helpers.PodPriority(pod)
	if of != nil {
		priority = of.Rank.Priority
	}
	g.infos = append(g.infos, info)
	g.Add(priority, pod)
}

// addGangs adds the gangs that are disrupted as a whole. Each member above the minimum is a unit, and all members
// together are one more unit. A gang with a member that can't be evicted is left out.
func (g *gathering) addGangs() {
	for _, key := range slices.SortedFunc(maps.Keys(g.whole), dialect.Key.Compare) {
		if g.stay.Has(key) {
			continue
		}
		var pods []*corev1.Pod
		for _, info := range g.whole[key] {
			g.infos, pods = append(g.infos, info), append(pods, info.GetPod())
		}
		of := g.standings[key]
		g.AddGang(of.Group, of.Placed, of.Rank.Priority, pods)
	}
}

// countViolations counts, for each unit, the Pods that a PodDisruptionBudget protects. As in the default preemption,
// the units use up the budget in the order in which they would be evicted.
func (s *seeker) countViolations(p *pool) error {
	if len(p.Units) == 0 {
		return nil
	}
	lister := s.cluster.Profiles[s.gang.schedulerName()].SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister()
	budgets, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	if len(budgets) == 0 {
		return nil
	}
	slices.SortStableFunc(p.Units, func(a, b victims.Unit) int { return victims.Compare(&a, &b) })
	units := make([]kube.Unit, len(p.Units))
	for u, unit := range p.Units {
		units[u].Priority = unit.Priority
		for _, pod := range unit.Pods {
			units[u].Pods = append(units[u].Pods, p.infos[pod])
		}
	}
	for u, n := range kube.Violations(units, budgets) {
		p.Units[u].Violations = n
	}
	return nil
}

// requests returns the pool's Pods in the planner's amounts.
func (p *pool) requests(classes []*class, world *planner.World) []victims.Pod {
	index := make(map[string]int, len(world.Nodes))
	for n := range world.Nodes {
		index[world.Nodes[n].Name] = n
	}
	resources := newResources(classes)
	pods := make([]victims.Pod, len(p.infos))
	for i, info := range p.infos {
		pods[i] = victims.Pod{
			Node:    index[info.GetPod().Spec.NodeName],
			Request: resources.quantities(info.CalculateResource().Resource, 1),
			Lost:    victims.Ran(info.GetPod(), p.Now),
		}
	}
	return pods
}
