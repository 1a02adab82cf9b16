// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Preemption that takes a member which the gang needs breaks the gang. The rest could not go
// on, and its room is of use to others: whoever outranks a gang may take it, but then as a
// whole.

// isPreempted says whether a Pod was marked as preempted. The mark comes before
// the deletion, which may be all at once.
func isPreempted(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// goesWhole says whether the rest of the gang goes with a member that it needs. While it starts,
// it does so in any mode: it starts whole or not at all.
func (g *gang) goesWhole() bool {
	return g.group != nil && (g.starts || g.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod)
}

// wasBroken says whether the gang would have its minimum if nobody had been preempted. One
// that would be short of members all the same was not broken by that.
func (g *gang) wasBroken() bool {
	return g.group != nil && g.lastHeld().HeldBy(g.withPreempted())
}

// isMarked says whether all that is left of the gang was marked as preempted, and is too little: a scheduler that has
// marked them, and deleted some, may have died then.
func (g *gang) isMarked() bool {
	if g.group == nil || g.lastHeld().HeldBy(g.placed) {
		return false
	}
	marked := 0
	for _, m := range g.members {
		if g.state(m) != memberPlaced || m.pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if !isPreempted(m.pod) {
			return false
		}
		marked++
	}
	return marked > 0
}

// withPreempted counts the members that are placed, and those that are going as they were preempted, or went while
// another scheduler led.
func (g *gang) withPreempted() podgroup.Tally {
	return g.placed.Plus(g.preemptedSince(time.Time{})).Plus(g.lost)
}

// preemptedSince counts the members that are going as they were preempted, and were deleted after a time. In the
// second of that time they were not: times of the API server are no more exact.
func (g *gang) preemptedSince(since time.Time) podgroup.Tally {
	var going podgroup.Tally
	for _, m := range g.members {
		if m.goesPreempted() && deletedAt(m.pod).After(since) {
			going.Add(g.key.RoleOf(m.pod), 1)
		}
	}
	return going
}

// goesPreempted says whether a member is going as it was preempted.
func (m *member) goesPreempted() bool {
	return m.pod.DeletionTimestamp != nil && m.pod.Spec.NodeName != "" && !m.isStranger() && !m.succeeded && isPreempted(m.pod)
}

// noteLost notes that a member has gone as it was preempted while another scheduler leads, or the PodGroup can't be seen:
// that one may end before it has dissolved the gang.
func (g *gang) noteLost(m *member, wasPlaced bool) {
	if m.goesPreempted() || wasPlaced && isPreempted(m.pod) && !m.succeeded {
		g.lost.Add(g.key.RoleOf(m.pod), 1)
	}
}

// deletedAt is when a Pod was deleted that is ending. Its own timestamp says until when it has time to end.
func deletedAt(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// breakUp has all members leave that are left of a gang which has lost one, if too few are.
// It returns them.
func (g *gang) breakUp() []*corev1.Pod {
	if !g.goesWhole() || g.lastHeld().HeldBy(g.placed) {
		return nil
	}
	g.preempted = true
	var rest []*corev1.Pod
	for _, m := range g.members {
		// One that is about to be bound would be left over too, unless it is taken already.
		if g.state(m) == memberPlaced && m.pod.Status.Phase != corev1.PodSucceeded && !m.taken {
			rest = append(rest, m.pod)
			g.setLeaving(m, true)
		}
	}
	return rest
}

// without is what is left of a gang's placed members if some Pods go, and whether the gang
// goes on with that. One that lacks its minimum already does not stop because of them.
func (g *gang) without(pods []*corev1.Pod) (left podgroup.Tally, goesOn bool) {
	if !g.goesWhole() {
		return podgroup.Tally{}, true
	}
	group := g.lastHeld()
	if !group.HeldBy(g.placed) {
		return podgroup.Tally{}, true
	}
	left = g.placed.Plus(podgroup.Tally{})
	for _, pod := range pods {
		if m := g.members[pod.UID]; m != nil && g.state(m) == memberPlaced {
			left.Add(g.key.RoleOf(pod), -1)
		}
	}
	return left, group.HeldBy(left)
}

// restWithout are the placed members that are left over if some Pods go, those that are about
// to be bound among them, nil if the gang can go on, or never could.
func (g *gang) restWithout(pods []*corev1.Pod) []*corev1.Pod {
	if _, goesOn := g.without(pods); goesOn {
		return nil
	}
	gone := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		gone[pod.UID] = true
	}
	var rest []*corev1.Pod
	for uid, m := range g.members {
		if !gone[uid] && g.state(m) == memberPlaced && m.pod.Status.Phase != corev1.PodSucceeded {
			rest = append(rest, m.pod)
		}
	}
	return rest
}
