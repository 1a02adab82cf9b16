// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
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

// isPreempted says whether the member is preempted: by this scheduler for an ordinary Pod, or by the mark on its own Pod.
func (m *member) isPreempted() bool {
	return m.attempt == underway || m.attempt != failed && isPreempted(m.pod)
}

// goesWhole says whether the rest of the gang goes with a member that it needs. While it starts,
// it does so in any mode: it starts whole or not at all.
func (g *gang) goesWhole() bool {
	return g.group != nil && (g.starts || g.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod)
}

// wasBroken says whether the gang would have its minimum if no member had been preempted. A gang
// that would be short of members all the same was not broken by that.
func (g *gang) wasBroken() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.withPreempted())
}

// spares says whether the gang has its minimum without the member that it has just lost.
func (g *gang) spares() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.placed)
}

// noticedWithin is how long it takes at most until the condition of a gang says that the gang lacks its minimum, after
// preemption has taken a member that the gang needed.
const noticedWithin = 10 * time.Second

// brokenSince is the time since when preemption can have broken a gang that lacks its minimum, by the gang's condition:
// a member that was preempted earlier was not needed. It is zero if the condition does not say that the gang has lost its
// minimum.
func (g *gang) brokenSince() time.Time {
	if since := news.LostSince(g.group.Conditions); !since.IsZero() {
		return since.Add(-noticedWithin)
	}
	return time.Time{}
}

// isMarked says whether all that is left of the gang was marked as preempted, and is too little: a scheduler that has
// marked them, and deleted some, may have died then.
func (g *gang) isMarked() bool {
	if g.group == nil || lastHeld(g).HeldBy(g.placed) {
		return false
	}
	marked := 0
	for _, m := range g.members {
		if g.state(m) != memberPlaced || m.pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if !m.isPreempted() {
			return false
		}
		marked++
	}
	return marked > 0
}

// withPreempted counts the members that are placed, and those that are going as they were preempted, or went while
// another scheduler led.
func (g *gang) withPreempted() podgroup.Tally {
	return g.placed.Plus(g.preemptedSince(g.brokenSince())).Plus(g.lost)
}

// preemptedSince counts the members that are going as they were preempted, were needed as far as is known, and were
// deleted after a time. Members that were deleted in the second of that time don't count: times of the API server are no
// more exact.
func (g *gang) preemptedSince(since time.Time) podgroup.Tally {
	var going podgroup.Tally
	for _, m := range g.members {
		if m.goesPreempted() && !m.spared && deletedAt(m.pod).After(since) {
			going.Add(g.key.RoleOf(m.pod), 1)
		}
	}
	return going
}

// goesPreempted says whether a member is going as it was preempted.
func (m *member) goesPreempted() bool {
	return m.pod.DeletionTimestamp != nil && m.pod.Spec.NodeName != "" && !m.isStranger() && !m.succeeded && m.isPreempted()
}

// noteLost notes that a member which the gang needed has gone as it was preempted, while another scheduler leads, or the
// PodGroup can't be seen: the other scheduler may end before it has dissolved the gang.
func (g *gang) noteLost(m *member, wasPlaced bool) {
	if m.spared || g.group != nil && m.goesPreempted() && !deletedAt(m.pod).After(g.brokenSince()) {
		return
	}
	if m.goesPreempted() || wasPlaced && m.isPreempted() && !m.succeeded {
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

// breakUp has all members leave that are left of a gang which has lost some, if fewer are left than the minimum. It
// returns them.
func (g *gang) breakUp(current func(*corev1.Pod) *corev1.Pod) []*corev1.Pod {
	if !g.goesWhole() || lastHeld(g).HeldBy(g.existing(current)) {
		return nil
	}
	g.preempted = true
	var rest []*corev1.Pod
	for _, m := range g.members {
		// A member that is about to be bound would be left over too, unless it is taken already.
		if g.state(m) == memberPlaced && m.pod.Status.Phase != corev1.PodSucceeded && m.attempt != givenBack && current(m.pod) != nil {
			rest = append(rest, m.pod)
			g.setLeaving(m, true)
		}
	}
	return rest
}

// without is how many of a gang's placed members are left if some Pods go, and whether the gang
// goes on with those. A gang that lacks its minimum already does not stop because of them.
func (g *gang) without(pods []*corev1.Pod) (left int, goesOn bool) {
	if !g.goesWhole() {
		return 0, true
	}
	group := lastHeld(g)
	if !group.HeldBy(g.placed) {
		return 0, true
	}
	var gone podgroup.Tally // below zero
	for _, pod := range pods {
		if m := g.members[pod.UID]; m != nil && g.state(m) == memberPlaced {
			gone.Add(g.key.RoleOf(pod), -1)
		}
	}
	return int(g.placed.Total + gone.Total), group.HeldBy(g.placed, gone)
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
