// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

type podGroup = schedulingv1alpha1.PodGroup

// pool is the work that a gang might take the place of.
type pool struct {
	pods  []fwk.PodInfo  // of units
	units []victims.Unit // whose Pods are indexes into pods
	// leaving are Pods that end anyway, and soon. If some of them might be taken, too, they
	// are yielding.
	leaving  []fwk.PodInfo
	yielding bool
}

// prey is which work a gang may have.
type prey struct {
	// takes says whether the gang may have a Pod; of is the Pod's gang, nil for none.
	takes func(pod *corev1.Pod, of *standing) bool
	// evictsNobody says that it is to end by itself. What ends and comes again at once is
	// of no use then.
	evictsNobody bool
}

// outranked is all work of lower priority.
func outranked(by line.Rank) prey {
	return prey{takes: func(pod *corev1.Pod, of *standing) bool {
		if of != nil {
			return of.rank.Priority < by.Priority
		}
		return corev1helpers.PodPriority(pod) < by.Priority
	}}
}

// ending is all work that ends by itself one day. Gangs do.
func ending() prey {
	return prey{evictsNobody: true, takes: func(pod *corev1.Pod, of *standing) bool { return of != nil || room.EndsByItself(pod) }}
}

// brokenBehind are the gangs behind one that have members placed, but too few, and have
// found no room for the others since a time before. They do no work, and wait as it does
// itself.
func brokenBehind(ahead line.Rank, before time.Time) prey {
	return prey{takes: func(_ *corev1.Pod, of *standing) bool {
		return of != nil && !of.whole() && of.waits && of.since.Before(before) && ahead.Compare(of.rank) < 0
	}}
}

// gather makes the pool of the work that may be taken. The priority of a gang is that
// of all its members, and gangs end. Of a gang that is disrupted as a whole,
// each member that it can spare is a unit, and all members together are one.
func (c *cycle) gather(may prey) (*pool, error) {
	nodes, err := c.snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	held := sets.New[types.UID]()
	for _, pod := range c.heldPods {
		held.Insert(pod.UID)
	}
	now, standings := c.tracker.now(), c.tracker.standings()
	p := &pool{}
	members := make(map[types.NamespacedName][]int)
	for _, node := range nodes {
		for _, info := range node.GetPods() {
			pod := info.GetPod()
			key, named := podgroup.GroupOf(pod)
			if held.Has(pod.UID) {
				continue
			}
			leaves := c.evictions.IsLeaving(pod, now)
			if named && key == c.view.key && podgroup.IsMember(c.view.group, pod) {
				if leaves {
					p.leaving = append(p.leaving, info)
				}
				continue
			}
			standing := standings[key]
			if !named || standing != nil && !podgroup.IsMember(standing.group, pod) {
				standing = nil
			}
			takes := may.takes(pod, standing)
			if may.evictsNobody && !takes {
				continue // If it is leaving, another one comes in its place.
			}
			if leaves {
				p.leaving = append(p.leaving, info)
				p.yielding = p.yielding || takes
				continue
			}
			if !takes || pod.DeletionTimestamp != nil {
				continue // One that was told to end, and does not, is of no use.
			}
			priority := corev1helpers.PodPriority(pod)
			if standing != nil {
				priority = standing.rank.Priority
			}
			p.pods = append(p.pods, info)
			if standing != nil && standing.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod {
				members[key] = append(members[key], len(p.pods)-1)
				continue
			}
			p.add(priority, now, len(p.pods)-1)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(members), compareKeys) {
		standing, whole := standings[key], members[key]
		byYouth(p.pods, whole, now)
		for _, spare := range standing.surplus(p.pods, whole) {
			p.add(standing.rank.Priority, now, spare)
		}
		p.add(standing.rank.Priority, now, whole...)
		p.units[len(p.units)-1].Spares = func(pods []int) bool { return standing.spares(p.pods, pods) }
	}
	if err := c.countViolations(p); err != nil {
		return nil, err
	}
	return p, nil
}

// add makes a unit of Pods, given by index.
func (p *pool) add(priority int32, now time.Time, pods ...int) {
	first := p.pods[pods[0]].GetPod()
	unit := victims.Unit{Name: first.Namespace + "/" + first.Name, Priority: priority, Pods: pods}
	for _, i := range pods {
		unit.Lost += ran(p.pods[i].GetPod(), now)
	}
	p.units = append(p.units, unit)
}

// countViolations says of each unit how many of its Pods a PodDisruptionBudget
// protects, as the default preemption counts it: the budget is spent on the
// units in the order in which they would be taken.
func (c *cycle) countViolations(p *pool) error {
	if len(p.units) == 0 {
		return nil
	}
	lister := anyPlugin(c.plugins).handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister()
	budgets, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	if len(budgets) == 0 {
		return nil
	}
	slices.SortStableFunc(p.units, func(a, b victims.Unit) int { return victims.Compare(&a, &b) })
	p.violate(budgets)
	return nil
}

func (p *pool) violate(budgets []*policyv1.PodDisruptionBudget) {
	units := make([]kube.Unit, len(p.units))
	for u, unit := range p.units {
		units[u].Priority = unit.Priority
		for _, pod := range unit.Pods {
			units[u].Pods = append(units[u].Pods, p.pods[pod])
		}
	}
	for u, n := range kube.Violations(units, budgets) {
		p.units[u].Violations = n
	}
}
