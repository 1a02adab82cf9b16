// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// pool is the work that a gang might preempt or wait for.
type pool struct {
	victims.Prey
	infos []fwk.PodInfo // of its Pods
	// leaving are Pods that are ending already. yielding reports that the gang might preempt some of them, too.
	leaving  []fwk.PodInfo
	yielding bool
	// soon are the Pods that the gang might wait for, the earliest end first.
	soon []soon
	// spared reports that the pool leaves out Pods that may be in the pool another time. Such a Pod can't be evicted
	// now, does not end, or may be a member of a gang that is not known yet.
	spared bool
}

// prey is which work a gang may take.
type prey struct {
	// takes reports whether the gang may preempt a Pod, or wait for its end. `of` is the Pod's gang, nil if none.
	takes func(pod *corev1.Pod, of *gangs.Standing) bool
	// evictsNobody reports that the Pods are to end by themselves. A Pod that is ending, but will be replaced by a
	// controller, is then of no use.
	evictsNobody bool
}

// outranked returns all work of lower rank.
func outranked(by queue.Rank) prey {
	return prey{takes: func(pod *corev1.Pod, of *gangs.Standing) bool {
		if of != nil {
			return of.Rank.Priority < by.Priority
		}
		return corev1helpers.PodPriority(pod) < by.Priority
	}}
}

// ending returns all work that will end by itself, as gangs do.
func ending() prey {
	return prey{evictsNobody: true, takes: func(pod *corev1.Pod, of *gangs.Standing) bool { return of != nil || ends.ByItself(pod) }}
}

// brokenBehind returns the gangs behind another gang that are broken: they have lost members, lack their minimum, and
// have found no room for replacements since `before`. Such gangs do no work, and wait just like the gang ahead.
func brokenBehind(ahead queue.Rank, before time.Time) prey {
	return prey{takes: func(_ *corev1.Pod, of *gangs.Standing) bool {
		return of != nil && !of.Group.HeldBy(of.Placed) && of.Waits && of.Since.Before(before) && ahead.Compare(of.Rank) < 0
	}}
}

// gather collects the Pods that the gang may preempt or wait for. For a gang that is disrupted as a whole, each member
// above the minimum is a unit, and all members together are one more unit. There is no unit of all members if one of
// them can't be evicted.
func (s *seeker) gather(may prey) (*pool, error) {
	nodes, err := s.cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if s.standings == nil {
		s.standings = s.cluster.Standings()
	}
	now, standings := s.cluster.Now(), s.standings
	p := &pool{Prey: victims.Prey{Now: now}}
	if !may.evictsNobody {
		p.MinRuntime = s.cluster.MinRuntime
	}
	members := make(map[dialect.Key][]fwk.PodInfo)
	stay := sets.New[dialect.Key]() // as one of them can't be evicted
	ending := make(map[dialect.Key][]int)
	if may.evictsNobody {
		pods := 0
		for _, node := range nodes {
			pods += len(node.GetPods())
		}
		p.soon = make([]soon, 0, pods)
	}
	for n, node := range nodes {
		for _, info := range node.GetPods() {
			pod := info.GetPod()
			key, named := s.cluster.KeyOf(pod)
			if s.held.Has(pod.UID) {
				continue
			}
			leaves := s.cluster.Evictions.IsLeaving(pod, now)
			if named && key == s.gang.Key && s.gang.Group.HasMember(pod) {
				if leaves {
					p.leaving = append(p.leaving, info)
				}
				continue
			}
			standing := standings[key]
			if !named || standing != nil && !standing.Group.HasMember(pod) {
				standing = nil
			}
			takes := may.takes(pod, standing)
			if takes && standing == nil && !may.evictsNobody && s.cluster.MayBeMember(pod) {
				takes, p.spared = false, true
			}
			if may.evictsNobody && !takes {
				continue // if it is leaving, its controller replaces it
			}
			if leaves {
				p.leaving = append(p.leaving, info)
				p.yielding = p.yielding || takes
				continue
			}
			if may.evictsNobody && pod.DeletionTimestamp == nil {
				one := soon{ran: victims.Ran(pod, now), info: info, node: n}
				if standing == nil {
					one.in = p.after(ends.OfPod(pod, now).Until(s.cluster.Estimates))
				} else {
					ending[key] = append(ending[key], len(p.soon))
				}
				p.soon = append(p.soon, one)
				continue
			}
			if !takes || pod.DeletionTimestamp != nil {
				p.spared = p.spared || takes
				continue // it was asked to end and does not
			}
			goesWhole := standing != nil && standing.GoesWhole
			if s.cluster.Evictions.IsRefused(pod, now) {
				p.spared = true
				if goesWhole {
					stay.Insert(key)
				}
				continue
			}
			if goesWhole {
				members[key] = append(members[key], info)
				continue
			}
			priority := corev1helpers.PodPriority(pod)
			if standing != nil {
				priority = standing.Rank.Priority
			}
			p.infos = append(p.infos, info)
			p.Add(priority, pod)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(members), dialect.Key.Compare) {
		if stay.Has(key) {
			continue
		}
		var pods []*corev1.Pod
		for _, info := range members[key] {
			p.infos, pods = append(p.infos, info), append(pods, info.GetPod())
		}
		p.AddGang(standings[key].Group, standings[key].Placed, standings[key].Rank.Priority, pods)
	}
	if may.evictsNobody {
		s.await(p, ending)
		return p, nil
	}
	if err := s.countViolations(p); err != nil {
		return nil, err
	}
	return p, nil
}

// after returns how much time is left until an end; Never if the end is zero, which means unknown.
func (p *pool) after(end time.Time) time.Duration {
	if end.IsZero() {
		return victims.Never
	}
	return end.Sub(p.Now)
}

// await computes when gangs end, and sorts soon. members are the Pods of each gang, as indexes in soon. Each of them is
// a unit of its own, because each ends by itself; see first.
func (s *seeker) await(p *pool, members map[dialect.Key][]int) {
	for key, of := range members {
		pods := make([]*corev1.Pod, len(of))
		for i, one := range of {
			pods[i] = p.soon[one].info.GetPod()
		}
		group := s.standings[key].Group
		// Ended members are not among the Pods.
		minimum := int(group.Spec.Minimum.Members) - max(0, int(s.standings[key].Placed.Total)-len(pods))
		in := p.after(ends.OfGang(group.Spec.Runtime, minimum, pods, p.Now).Until(s.cluster.Estimates))
		for _, one := range of {
			p.soon[one].in = in
		}
	}
	slices.SortFunc(p.soon, func(a, b soon) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.ran, b.ran)) })
}

// soon is a Pod, with the time that is left until it ends, the time that it has run, and the index of its node in the
// snapshot.
type soon struct {
	in, ran time.Duration
	info    fwk.PodInfo
	node    int
}

// first returns the part of the pool with the n Pods that end first. If a search succeeds with this part, it would find
// the same with all Pods, because it chooses as few of the first Pods as suffice. helps reports whether it can help the
// gang if Pods of a node end; Pods of other nodes are left out. Nil: all nodes help.
func (p *pool) first(n int, helps func(node int) bool) *pool {
	part := *p
	part.Prey, part.infos, part.spared = victims.Prey{Now: p.Now}, nil, p.spared || n < len(p.soon)
	for _, one := range p.soon[:min(n, len(p.soon))] {
		if helps == nil || helps(one.node) {
			part.infos = append(part.infos, one.info)
			part.AddEnding(one.info.GetPod(), one.in)
		}
	}
	return &part
}

// endsOn returns the times at which the Pods of some nodes end that the gang might wait for, and all Pods that are
// ending already.
func (s *seeker) endsOn(p *pool, names sets.Set[string]) (room.Ends, error) {
	nodes, err := s.cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	on := make([]bool, len(nodes))
	for n, node := range nodes {
		on[n] = names.Has(node.Node().Name)
	}
	ends := make(room.Ends)
	for _, one := range p.soon {
		switch {
		case !on[one.node]:
		case one.in == victims.Never:
			ends[one.info.GetPod().UID] = time.Time{}
		default:
			ends[one.info.GetPod().UID] = p.Now.Add(one.in)
		}
	}
	for _, info := range p.leaving {
		ends[info.GetPod().UID] = s.cluster.Evictions.GoneBy([]fwk.PodInfo{info}, p.Now)
	}
	return ends, nil
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
	p.violate(budgets)
	return nil
}

func (p *pool) violate(budgets []*policyv1.PodDisruptionBudget) {
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
