// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// alter changes a member, and updates the counts.
func (g *gang) alter(m *member, change func()) {
	g.count(m, -1)
	change()
	g.count(m, 1)
}

// setGroup records the gang's new or changed PodGroup. `another` reports whether it is another PodGroup than before.
// isNews reports whether the change affects the gang.
func (g *gang) setGroup(group *dialect.Group, now time.Time) (another, isNews bool) {
	old, asked := g.group, g.staging.asked
	g.become(group)
	g.staging.asked = group
	judged := g.judgeAll(old, now)
	if old == nil || old.UID != group.UID {
		lost := g.lost
		g.groupSeen = now
		g.inheritNothing()
		if old == nil {
			g.lost = lost // the group was not known before
		}
		g.phaseWriter.see(group, now)
		return true, true
	}
	if before := (news.Record{Version: old.ResourceVersion}); before.IsAhead(group) { // etcd was restored
		g.record.ForgetStatus()
	}
	g.phaseWriter.see(group, now)
	if isStaged(g) {
		g.group = old.Renewed(group)
	}
	if asked == nil { // what was there before was no object
		asked = old
	}
	changed := !asked.Spec.Equal(&group.Spec)
	if changed {
		g.bindings.pardon()
	}
	return false, judged || changed
}

// loseGroup handles the deletion of the gang's PodGroup.
func (g *gang) loseGroup(now time.Time) {
	old := g.group
	g.become(nil)
	g.groupless, g.staging.asked = now, nil
	g.judgeAll(old, now)
	g.inheritNothing()
}

// become sets the gang's group. If members count differently with the new group, it counts them again.
func (g *gang) become(group *dialect.Group) {
	if loose := group != nil && group.Spec.Loose; loose == g.isLoose() {
		g.group = group
		return
	}
	for _, m := range g.members {
		g.count(m, -1)
	}
	g.group = group
	for _, m := range g.members {
		g.count(m, 1)
	}
}

// inheritNothing drops what was recorded for an earlier PodGroup, because another PodGroup with the same name is a new
// group.
func (g *gang) inheritNothing() {
	g.record, g.phaseWriter = news.Record{}, phaseWriter{}
	g.kept, g.nominees, g.preempted, g.lost = "", nil, false, podgroup.Tally{}
	g.staging = staging{asked: g.staging.asked}
	for _, m := range g.members {
		joinStage(g, m, m.seen)
	}
	g.bindings.forget()
	g.failedMembers, g.deletedMembers = 0, 0
}

// add adds an unknown Pod.
func (g *gang) add(pod *corev1.Pod, now time.Time) {
	m := &member{seen: now}
	m.show(pod)
	g.members[pod.UID] = m
	g.bindings.pardon()
	hear(g, m, now)
	g.judge(m, now)
	g.count(m, 1)
	if g.state(m) == memberPlaced {
		g.lost = podgroup.Tally{} // the gang begins anew
	}
	joinStage(g, m, now)
}

// see updates a member from its Pod. isNews reports whether the change concerns the gang. wasPlaced reports whether the
// gang counted the member as placed before.
func (g *gang) see(m *member, pod *corev1.Pod, now time.Time) (isNews, wasPlaced bool) {
	before, was, wasBound, wasStranger := g.state(m), m.pod, m.bound(), m.isStranger()
	roleChanged := g.key.RoleOf(m.pod) != g.key.RoleOf(pod)
	// Other Pods select by labels, members select each other, and plugins read annotations and the claims that were
	// created for a Pod.
	relabelled := roleChanged || before == memberWaiting &&
		(!maps.Equal(was.Labels, pod.Labels) || !maps.Equal(was.Annotations, pod.Annotations) ||
			!equality.Semantic.DeepEqual(was.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses))
	saysAnother := listen(g, m, pod, now)
	if relabelled || was.Spec.NodeName == pod.Spec.NodeName && was.Generation != pod.Generation || pod.Spec.NodeName != "" && m.assumed != "" {
		g.bindings.pardon()
	}
	if was.Generation != pod.Generation || roleChanged {
		m.class = ""
	}
	g.alter(m, func() {
		m.show(pod)
		if pod.Spec.NodeName != "" {
			if was.Spec.NodeName == "" && m.assumed == "" {
				m.placedSince = now
			}
			m.assumed = ""
			m.settle()
		}
		g.judge(m, now)
	})
	if wasBound && !m.isStranger() && pod.Status.Phase == corev1.PodFailed {
		g.failedMembers++
	}
	if before != memberPlaced && g.state(m) == memberPlaced {
		g.lost = podgroup.Tally{} // the gang begins anew
	}
	isNews = g.state(m) != before || m.bound() != wasBound || m.isStranger() != wasStranger || was.Generation != pod.Generation || relabelled || saysAnother
	return isNews, before == memberPlaced && !m.isStranger()
}

// isBoundElsewhere reports whether another scheduler has bound a waiting member, given its new Pod. The result is false
// if this scheduler has ever placed the member: that binding may have succeeded although it seemed to fail.
func (g *gang) isBoundElsewhere(m *member, pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && m.placement == 0 && g.state(m) == memberWaiting
}

// drop removes a deleted Pod. isNews reports whether this concerns the gang. wasPlaced reports whether the gang counted
// the Pod as placed.
func (g *gang) drop(m *member, now time.Time) (isNews, wasPlaced bool) {
	before := g.state(m)
	g.count(m, -1)
	delete(g.members, m.pod.UID)
	g.bindings.pardon()
	unhear(g, m, now)
	if m.isStranger() {
		return false, false
	}
	if g.staging.most.Total > 0 && m.succeeded {
		g.staging.most.Add(g.key.RoleOf(m.pod), -1) // no controller replaces it
		g.staging.bound.Add(g.key.RoleOf(m.pod), -1)
	}
	if m.assumed != "" && m.attempt != givenBack {
		uncountStage(g)
	}
	if m.pod.Spec.NodeName != "" && m.pod.Status.Phase != corev1.PodFailed {
		g.deletedMembers++
	}
	return true, before == memberPlaced
}

// assume places members on nodes, by the UID of the Pod, and reports whether the minimum then holds. If not, it changes
// nothing.
func (g *gang) assume(nodes map[types.UID]string, current func(*corev1.Pod) *corev1.Pod, now time.Time) bool {
	placed := g.existing(current)
	for uid := range nodes {
		if m := g.members[uid]; m != nil && g.state(m) == memberWaiting && current(m.pod) != nil {
			placed.Add(g.key.RoleOf(m.pod), 1)
		}
	}
	if !g.group.HeldBy(placed) {
		return false
	}
	g.starts = g.starts || g.bound.Total == 0
	placement := g.bindings.begin()
	for uid, node := range nodes {
		if m := g.members[uid]; m != nil && m.pod.Spec.NodeName == "" {
			m.settle()
			g.alter(m, func() { m.assumed, m.placement, m.placedSince = node, placement, now })
		}
	}
	return true
}

// unassume undoes the placement of a member that could not be bound. first reports whether this is the first failure of
// that placement.
func (g *gang) unassume(m *member, message string, refused bool, now time.Time) (first bool) {
	// If the member was being preempted, this completes that: a Pod that is not bound is not deleted for it.
	g.alter(m, func() { m.assumed, m.leaving, m.placedSince = "", false, time.Time{} })
	if m.attempt != givenBack {
		uncountStage(g)
	}
	if refused {
		g.bindings.refuse(m.placement, now)
	}
	return g.bindings.fail(m.placement, message)
}

// isBinding reports whether a member is assumed and its binding was not observed yet.
func (g *gang) isBinding() bool {
	for _, m := range g.members {
		if m.assumed != "" {
			return true
		}
	}
	return false
}

// setLeaving sets whether a member is being preempted.
func (g *gang) setLeaving(m *member, leaving bool) {
	g.alter(m, func() { m.leaving = leaving })
}

// judge decides whether a Pod is a member of its gang, or a stranger. As long as the PodGroup has not been seen, the
// Pod counts as a member, which does no harm because nothing is placed then. Call judge while the Pod is not counted.
func (g *gang) judge(m *member, now time.Time) {
	switch {
	case g.group == nil || g.group.HasMember(m.pod):
		m.strangerSince = time.Time{}
	case !m.isStranger():
		m.strangerSince = now
	}
}

// judgeAll decides again which of a gang's Pods are members, if the PodGroup was created or deleted, or if its owner or
// member labels have changed. It reports whether a Pod has become a member or a stranger.
func (g *gang) judgeAll(before *dialect.Group, now time.Time) bool {
	if before != nil && g.group != nil && ownerOf(before) == ownerOf(g.group) && maps.Equal(before.MemberLabels, g.group.MemberLabels) {
		return false
	}
	judged := false
	for _, m := range g.members {
		if isMember := g.group == nil || g.group.HasMember(m.pod); isMember == m.isStranger() {
			g.alter(m, func() { g.judge(m, now) })
			judged = true
		}
	}
	return judged
}
