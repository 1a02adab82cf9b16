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
	// ending has, by gang, the Pods of gangs that end by themselves, as indexes in soon.
	ending map[dialect.Key][]int
}

// gather collects the Pods that the gang may preempt or wait for.
func (s *seeker) gather(may prey) (*pool, error) {
	nodes, err := s.cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if s.standings == nil {
		s.standings = s.cluster.Standings()
	}
	g := gathering{pool: &pool{Prey: victims.Prey{Now: s.cluster.Now()}}, cluster: s.cluster, standings: s.standings, may: may,
		whole: make(map[dialect.Key][]fwk.PodInfo), stay: sets.New[dialect.Key](), ending: make(map[dialect.Key][]int)}
	if may.evictsNobody {
		pods := 0
		for _, node := range nodes {
			pods += len(node.GetPods())
		}
		g.soon = make([]soon, 0, pods)
	} else {
		g.MinRuntime = s.cluster.MinRuntime
	}
	for n, node := range nodes {
		for _, info := range node.GetPods() {
			key, named := s.cluster.KeyOf(info.GetPod())
			switch {
			case s.held.Has(info.GetPod().UID):
			case named && key == s.gang.Key && s.gang.Group.HasMember(info.GetPod()):
				if s.cluster.Evictions.IsLeaving(info.GetPod(), g.Now) {
					g.leaving = append(g.leaving, info)
				}
			default:
				g.add(info, n, g.standingOf(info.GetPod(), key, named))
			}
		}
	}
	if may.evictsNobody {
		s.await(g.pool, g.ending)
		return g.pool, nil
	}
	g.addGangs()
	if err := s.countViolations(g.pool); err != nil {
		return nil, err
	}
	return g.pool, nil
}

// standingOf returns the gang of a Pod that names the gang with this key; nil if the Pod is no member of a known gang.
func (g *gathering) standingOf(pod *corev1.Pod, key dialect.Key, named bool) *gangs.Standing {
	standing := g.standings[key]
	if !named || standing != nil && !standing.Group.HasMember(pod) {
		return nil
	}
	return standing
}

// add adds a Pod of another gang, or a Pod without a gang, if the gang may preempt the Pod or wait for its end. node is
// the index of the Pod's node in the snapshot.
func (g *gathering) add(info fwk.PodInfo, node int, of *gangs.Standing) {
	pod := info.GetPod()
	takes := g.may.takes(pod, of)
	if takes && of == nil && !g.may.evictsNobody && g.cluster.MayBeMember(pod) {
		takes, g.spared = false, true
	}
	switch {
	case g.may.evictsNobody && !takes: // If the Pod is ending, its controller replaces it.
	case g.cluster.Evictions.IsLeaving(pod, g.Now):
		g.leaving = append(g.leaving, info)
		g.yielding = g.yielding || takes
	case !takes:
	case pod.DeletionTimestamp != nil: // The Pod was asked to end and does not.
		g.spared = true
	case g.may.evictsNobody:
		g.addSoon(info, node, of)
	default:
		g.addVictim(info, of)
	}
}

// addSoon adds a Pod that ends by itself to g.soon. For a Pod without a gang, addSoon also computes when the Pod ends;
// for the members of a gang, await does so later.
func (g *gathering) addSoon(info fwk.PodInfo, node int, of *gangs.Standing) {
	one := soon{ran: victims.Ran(info.GetPod(), g.Now), info: info, node: node}
	if of == nil {
		one.in = g.after(ends.OfPod(info.GetPod(), g.Now).Until(g.cluster.Estimates))
	} else {
		g.ending[of.Rank.Key] = append(g.ending[of.Rank.Key], len(g.soon))
	}
	g.soon = append(g.soon, one)
}

// addVictim adds a Pod that the gang may preempt. A Pod of a gang that is disrupted as a whole is added later; see
// addGangs.
func (g *gathering) addVictim(info fwk.PodInfo, of *gangs.Standing) {
	pod, goesWhole := info.GetPod(), of != nil && of.GoesWhole
	if g.cluster.Evictions.IsRefused(pod, g.Now) {
		g.spared = true
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
