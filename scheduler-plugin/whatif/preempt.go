// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// prey is the work that a gang might take.
type prey struct {
	victims.Prey
	// leaving are Pods that end soon in any case.
	leaving []*corev1.Pod
}

// preempt adds to an answer which Pods would be evicted for a gang that has no room. It adds nothing if evictions would
// not help.
func preempt(s *survey, snapshot *Snapshot, all map[dialect.Key]*gang, g *gang, pods []*corev1.Pod, answer *answers.Simulation) {
	p := preyOf(s, snapshot, all, g)
	gone := make(map[*corev1.Pod]bool)
	for _, pod := range slices.Concat(p.Pods, p.leaving) {
		gone[pod] = true
	}
	empty := s.worldWith(slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return gone[pod] }))
	least := *s.gang
	least.LeastOnly = true
	var taken []victims.Pod
	for _, pod := range p.Pods {
		taken = append(taken, victims.Pod{Node: s.index[pod.Spec.NodeName], Request: s.taking(pod), Lost: victims.Ran(pod, snapshot.Now)})
	}
	choices := victims.Search(empty, &least, taken, p.Units, nil)
	if len(choices) == 0 {
		return
	}
	answer.FitsAfterPreemption = true
	chosen := choices[0].Pods
	for _, i := range chosen {
		pod := p.Pods[i]
		victim := answers.Victim{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Priority: corev1helpers.PodPriority(pod)}
		if key, named := snapshot.Links.KeyOf(pod); named {
			victim.Group = key.Name
		}
		answer.Victims = append(answer.Victims, victim)
	}
	if most := len(answer.Victims); most > answers.MaxVictims {
		answer.Victims, answer.HiddenVictims = answer.Victims[:answers.MaxVictims], most-answers.MaxVictims
	}
	if len(chosen) == 0 {
		answer.Message = "there is room as soon as Pods have ended that are ending now"
		return
	}
	answer.Unknown = append(answer.Unknown, "PodDisruptionBudgets are not taken into account: victims may be others")
	answer.Message += fmt.Sprintf("; there is room if %s of lower priority %s evicted", text.Counted(len(chosen), "Pod"), text.Form(len(chosen), "is", "are"))
	showAfter(s, answer, empty, p, chosen, &least)
}

// showAfter completes an answer with the nodes that the gang gets once the chosen Pods are gone.
func showAfter(s *survey, answer *answers.Simulation, empty *planner.World, p *prey, chosen []int, least *planner.Gang) {
	stays := slices.Repeat([]bool{true}, len(p.Pods))
	for _, i := range chosen {
		stays[i] = false
	}
	for i, pod := range p.Pods {
		if !stays[i] {
			continue
		}
		for r, q := range s.taking(pod) {
			empty.Nodes[s.index[pod.Spec.NodeName]].Free[r] -= q
		}
	}
	for plan := range planner.Plans(empty, least) {
		message, room := answer.Message, answer.Room
		s.tell(answer, plan)
		answer.Message, answer.Room = message, room
		return
	}
}

// preyOf returns two sets of Pods. The first are those that gang g may preempt: all Pods of lower priority, or none if
// g may not preempt. They are grouped into units, which are evicted as a whole: of a gang that can't go on below its
// minimum, each member above the minimum is a unit, and all members together are one more unit. The second set are the
// Pods that are ending already.
func preyOf(s *survey, snapshot *Snapshot, all map[dialect.Key]*gang, g *gang) *prey {
	p := &prey{Prey: victims.Prey{Now: snapshot.Now}}
	whole := make(map[dialect.Key][]*corev1.Pod)
	for _, pod := range snapshot.Pods {
		if _, onNode := s.index[pod.Spec.NodeName]; !onNode || hasEnded(pod) {
			continue
		}
		of, priority := (*gang)(nil), corev1helpers.PodPriority(pod)
		if key, named := snapshot.Links.KeyOf(pod); named && all[key] != nil && all[key].group.HasMember(pod) {
			of, priority = all[key], all[key].rank.Priority
		}
		switch {
		case pod.DeletionTimestamp != nil:
			// A Pod that should have ended by now may never end: its node may be gone.
			if snapshot.Now.Before(victims.EndOf(pod)) {
				p.leaving = append(p.leaving, pod)
			}
		case of == g || !g.mayPreempt() || priority >= g.rank.Priority:
		case of != nil && of.goesWhole():
			whole[of.group.Key] = append(whole[of.group.Key], pod)
		default:
			p.Add(priority, pod)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(whole), dialect.Key.Compare) {
		p.AddGang(all[key].group, all[key].placed, all[key].rank.Priority, whole[key])
	}
	return p
}

// goesWhole reports whether all members have to go together with a needed member.
func (g *gang) goesWhole() bool {
	return g.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod || !g.isPlaced()
}
