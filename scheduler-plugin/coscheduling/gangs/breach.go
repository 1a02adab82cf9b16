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

// If preemption takes a member that the gang needs, the gang can't go on, and others can use its room. So whatever
// outranks a gang may take the gang, but only as a whole.

// isPreempted reports whether a Pod was marked as preempted. The mark is written before the deletion, and may be all
// that was written.
func isPreempted(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// isPreempted reports whether the member is preempted: by this scheduler for an ordinary Pod, or according to the mark
// on its Pod.
func (m *member) isPreempted() bool {
	return m.attempt == underway || m.attempt != failed && isPreempted(m.pod)
}

// goesWhole reports whether the rest of the gang goes together with a needed member. During the start this is so in any
// mode: the gang starts whole or not at all.
func (g *gang) goesWhole() bool {
	return g.group != nil && (g.starts || g.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod)
}

// wasBroken reports whether the gang would have its minimum if no member had been preempted. A gang that lacked members
// anyway was not broken by preemption.
func (g *gang) wasBroken() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.withPreempted())
}

// spares reports whether the gang has its minimum without the member that it has just lost.
func (g *gang) spares() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.placed)
}

// noticedWithin is the longest time between the preemption of a needed member and the gang's condition saying that the
// minimum is lost.
const noticedWithin = 10 * time.Second

// brokenSince returns since when preemption can have broken a gang that lacks its minimum, according to the gang's
// condition: a member that was preempted earlier was not needed. It returns zero if the condition does not say that the
// gang has lost its minimum.
func (g *gang) brokenSince() time.Time {
	if since := news.LostSince(g.group.Conditions); !since.IsZero() {
		return since.Add(-noticedWithin)
	}
	return time.Time{}
}

// isMarked reports whether all remaining members were marked as preempted, and are too few: a scheduler that has marked
// all and deleted some may have died then.
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

// withPreempted counts the placed members, and members that are going, or went under another leader, because of
// preemption.
func (g *gang) withPreempted() podgroup.Tally {
	return g.placed.Plus(g.preemptedSince(g.brokenSince())).Plus(g.lost)
}

// preemptedSince counts the members that are going because of preemption, were needed as far as is known, and were
// deleted after a time. Members deleted in the same second don't count, because the API server's times are in seconds.
func (g *gang) preemptedSince(since time.Time) podgroup.Tally {
	var going podgroup.Tally
	for _, m := range g.members {
		if m.goesPreempted() && !m.spared && deletedAt(m.pod).After(since) {
			going.Add(g.key.RoleOf(m.pod), 1)
		}
	}
	return going
}

// goesPreempted reports whether a member is going because of preemption.
func (m *member) goesPreempted() bool {
	return m.pod.DeletionTimestamp != nil && m.pod.Spec.NodeName != "" && !m.isStranger() && !m.succeeded && m.isPreempted()
}

// noteLost records that a needed member has gone because of preemption while another scheduler leads, or while the
// PodGroup can't be read: the other scheduler may end before it has dissolved the gang.
func (g *gang) noteLost(m *member, wasPlaced bool) {
	if m.spared || g.group != nil && m.goesPreempted() && !deletedAt(m.pod).After(g.brokenSince()) {
		return
	}
	if m.goesPreempted() || wasPlaced && m.isPreempted() && !m.succeeded {
		g.lost.Add(g.key.RoleOf(m.pod), 1)
	}
}

// deletedAt returns when the deletion of an ending Pod was requested. The deletion timestamp is the end of the grace
// period.
func deletedAt(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// breakUp makes all remaining members of a gang leave if fewer are left than the minimum, and returns these members.
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

// without returns how many of a gang's placed members are left if some Pods go, and whether the gang then goes on. A
// gang that already lacks its minimum does not stop because of these Pods.
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

// restWithout returns the placed members that are left over if some Pods go, including members that are about to be
// bound; nil if the gang can go on, or never could.
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
