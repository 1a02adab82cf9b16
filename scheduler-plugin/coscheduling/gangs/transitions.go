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

// alter changes a member, and counts it anew.
func (g *gang) alter(m *member, change func()) {
	g.count(m, -1)
	change()
	g.count(m, 1)
}

// setGroup has the gang be that of a PodGroup, new or changed. It says whether it is another
// group than before, and whether anything is new that concerns the gang.
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
			g.lost = lost // it was not known yet
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

// loseGroup has the gang be without a PodGroup: it is gone.
func (g *gang) loseGroup(now time.Time) {
	old := g.group
	g.become(nil)
	g.groupless, g.staging.asked = now, nil
	g.judgeAll(old, now)
	g.inheritNothing()
}

// become has the gang be that of another group, or of a later state of one, and counts the members
// anew if that makes them something else.
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

// inheritNothing forgets what has become of the PodGroup before: one of the same name is
// another one.
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

// add makes a Pod known that was not.
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

// see has a member be as its Pod is now. It says whether anything is new that concerns the
// gang, and whether the gang had counted the member as placed.
func (g *gang) see(m *member, pod *corev1.Pod, now time.Time) (isNews, wasPlaced bool) {
	before, was, wasBound, wasStranger := g.state(m), m.pod, m.bound(), m.isStranger()
	roleChanged := g.key.RoleOf(m.pod) != g.key.RoleOf(pod)
	// Other Pods select by labels, members each other, and plugins look at annotations and
	// at the claims that were made for a Pod.
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

// isBoundElsewhere says whether somebody else has bound a member that waits, as its Pod is now. One
// that this scheduler has placed before may have been bound by it, though it was told that the
// binding had failed.
func (g *gang) isBoundElsewhere(m *member, pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && m.placement == 0 && g.state(m) == memberWaiting
}

// drop forgets a Pod that is gone. It says whether that concerns the gang, and whether the
// gang had counted it as placed.
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
		g.staging.most.Add(g.key.RoleOf(m.pod), -1) // nobody makes it anew
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

// assume has members be placed on nodes, by UID, and says whether that keeps the minimum. If not, nothing is changed.
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

// unassume takes back where a member was assumed: it could not be bound. It says whether it
// is the first one of its placement.
func (g *gang) unassume(m *member, message string, refused bool, now time.Time) (first bool) {
	// If it was being preempted, that was all: a Pod that is not bound yet is not
	// deleted for it.
	g.alter(m, func() { m.assumed, m.leaving, m.placedSince = "", false, time.Time{} })
	if m.attempt != givenBack {
		uncountStage(g)
	}
	if refused {
		g.bindings.refuse(m.placement, now)
	}
	return g.bindings.fail(m.placement, message)
}

// isBinding says whether a member is assumed whose binding is not seen.
func (g *gang) isBinding() bool {
	for _, m := range g.members {
		if m.assumed != "" {
			return true
		}
	}
	return false
}

// setLeaving has a member be preempted, or not any more.
func (g *gang) setLeaving(m *member, leaving bool) {
	g.alter(m, func() { m.leaving = leaving })
}

// judge finds out whether a Pod is a member of its gang, or a stranger. While the
// PodGroup is not seen, that is unknown, and the Pod is taken for a member: nothing
// is placed anyway. The Pod must not be counted meanwhile.
func (g *gang) judge(m *member, now time.Time) {
	switch {
	case g.group == nil || g.group.HasMember(m.pod):
		m.strangerSince = time.Time{}
	case !m.isStranger():
		m.strangerSince = now
	}
}

// judgeAll judges all Pods of a gang anew if its PodGroup has come or gone, or has another owner or other labels of members than
// the one before. It reports whether a Pod is a member that was none, or the other way round.
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
