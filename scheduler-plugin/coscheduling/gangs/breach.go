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

// isPreempted reports whether a Pod is marked as preempted by the condition DisruptionTarget. The mark is written
// before the Pod is deleted, so there may be a mark without a deletion.
func isPreempted(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// isPreempted reports whether the member is being preempted. This is so if this scheduler is preempting it for an
// ordinary Pod, or if its Pod has the mark and that preemption has not failed.
func (m *member) isPreempted() bool {
	return m.attempt == underway || m.attempt != failed && isPreempted(m.pod)
}

// goesWhole reports whether all members of the gang are evicted if a needed member is preempted. During the gang's
// start this does not depend on the disruptionMode, because a gang starts as a whole or not at all.
func (g *gang) goesWhole() bool {
	return g.group != nil && (g.starts || g.group.Spec.DisruptionMode != schedulingv1alpha1.DisruptPod)
}

// wasBroken reports whether the gang would have its minimum if no member had been preempted. If not, the gang lacks
// members for another reason, too.
func (g *gang) wasBroken() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.withPreempted())
}

// spares reports whether the gang still has the minimum that it had: that of its stage, if it is placed in stages.
func (g *gang) spares() bool {
	return g.group != nil && lastHeld(g).HeldBy(g.placed)
}

// noticedWithin limits how long the gang's condition may lag behind: if a needed member is preempted, the condition
// says within this time that the minimum is lost.
const noticedWithin = 10 * time.Second

// brokenSince returns the earliest time at which preemption can have broken a gang that lacks its minimum, according to
// the gang's condition. A member that was preempted earlier was not needed. The result is zero if the condition does
// not say that the gang has lost its minimum.
func (g *gang) brokenSince() time.Time {
	if since := news.LostSince(g.group.Conditions); !since.IsZero() {
		return since.Add(-noticedWithin)
	}
	return time.Time{}
}

// isMarked reports whether all remaining members are marked as preempted, and are fewer than the minimum. This happens
// if a scheduler has marked all members, has deleted some of them, and then has died.
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

// withPreempted counts the placed members and those lost to preemption: members that are being deleted, and members
// that were deleted under another leader.
func (g *gang) withPreempted() podgroup.Tally {
	return g.placed.Plus(g.preemptedSince(g.brokenSince())).Plus(g.lost)
}

// preemptedSince counts the members that are being deleted because of preemption, were needed as far as is known, and
// were deleted after the given time. The API server's times are in whole seconds, so a member that was deleted in the
// same second does not count.
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

// noteLost records that a needed member is gone because of preemption. It is called while another scheduler leads, or
// while the PodGroup can't be read. If the other scheduler ends before it has evicted the rest of the gang, this
// scheduler can do so.
func (g *gang) noteLost(m *member, wasPlaced bool) {
	if m.spared || g.group != nil && m.goesPreempted() && !deletedAt(m.pod).After(g.brokenSince()) {
		return
	}
	if m.goesPreempted() || wasPlaced && m.isPreempted() && !m.succeeded {
		g.lost.Add(g.key.RoleOf(m.pod), 1)
	}
}

// deletedAt returns when the deletion of a Pod was requested. The Pod's deletionTimestamp is later: it is the end of
// the grace period.
func deletedAt(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// breakUp handles a gang that lacks its minimum because of preemption. All remaining members then count as leaving.
// breakUp returns these members, which the caller evicts. The result is nil if the gang has its minimum, or if members
// may be preempted one by one.
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

// without returns how many of a gang's placed members would be left without the given Pods, and whether the gang would
// go on without them. If the gang lacks its minimum anyway, goesOn is true, because these Pods make no difference.
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

// restWithout returns the placed members that have to be evicted together with the given Pods, including members that
// are about to be bound. It returns nil if the gang goes on without these Pods.
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
