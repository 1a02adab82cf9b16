// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// tracker knows the gangs: their PodGroups, their members and what became of
// the last attempt to place them. It is safe for concurrent use.
//
// Lock order: PreEnqueue calls the tracker with the scheduling queue's lock held.
// So the tracker never calls the queue; it tells wake and report, which only put
// a key on a queue of their own.
type tracker struct {
	ours func(schedulerName string) bool
	now  func() time.Time
	// wake asks for the leader to be offered to the scheduling queue after d,
	// report for the conditions to be written.
	wake, report func(key types.NamespacedName, d time.Duration)

	// dissolve asks for the rest of a gang to be deleted. It must not block.
	dissolve func(group *schedulingv1alpha1.PodGroup, rest []*corev1.Pod)
	// classPriority is the value of a PriorityClass, false if there is none of
	// the name.
	classPriority func(name string) (int32, bool)

	mu    sync.RWMutex
	gangs map[types.NamespacedName]*gang
	// awake are the gangs for which something happened that may help since their
	// last cycle began.
	awake map[types.NamespacedName]*gang
	// planned are the gangs that have had a cycle since all their members were
	// last placed. These hear of the events that are helpful.
	planned map[types.NamespacedName]*gang
	helpful []fwk.ClusterEvent
	// synced says that all that existed at the start has been seen, and that the
	// scheduler leads. Before that, members that are placed may still be unknown:
	// nothing is planned, written or evicted.
	synced bool
	// debts are until when namespaces pay for turns that took too long; see overdue.go.
	debts map[string]time.Time
	// noGroups says that the API server does not serve PodGroups, so far.
	noGroups bool
	// tellsNoGroups says that Pods are told so; see groupless.go.
	tellsNoGroups bool
}

func newTracker(ours func(string) bool, now func() time.Time, wake, report func(types.NamespacedName, time.Duration)) *tracker {
	return &tracker{
		ours: ours, now: now, wake: wake, report: report,
		dissolve:      func(*schedulingv1alpha1.PodGroup, []*corev1.Pod) {},
		classPriority: func(string) (int32, bool) { return 0, false },
		gangs:         make(map[types.NamespacedName]*gang),
		awake:         make(map[types.NamespacedName]*gang),
		planned:       make(map[types.NamespacedName]*gang),
		debts:         make(map[string]time.Time),
		helpful:       helpful(),
	}
}

// incompleteReportDelay is how long a gang is left alone while its Pods are
// being created before its condition says that some are missing.
const incompleteReportDelay = time.Second

// gangOf finds or makes the gang of a key. The caller holds the lock.
func (t *tracker) gangOf(key types.NamespacedName) *gang {
	g, ok := t.gangs[key]
	if !ok {
		g = newGang(key)
		g.groupless = t.now()
		t.gangs[key] = g
	}
	return g
}

// forgetIfEmpty drops a gang that nothing is known of any more.
func (t *tracker) forgetIfEmpty(g *gang) {
	if g.group == nil && len(g.members) == 0 {
		delete(t.gangs, g.key)
		delete(t.awake, g.key)
		delete(t.planned, g.key)
	}
}

// changed makes the gang's news known. The caller holds the lock.
func (t *tracker) changed(g *gang) {
	if !t.synced {
		if t.tellsNoGroups {
			t.report(g.key, incompleteReportDelay)
		}
		return
	}
	if g.complete() {
		t.markAwake(g)
		t.wake(g.key, 0)
		t.report(g.key, 0)
		return
	}
	if g.held != heldNot {
		t.wake(g.key, 0) // to give up the room
	}
	if g.scheduled() {
		t.report(g.key, 0)
		return
	}
	t.report(g.key, incompleteReportDelay)
}

// setSynced says that the initial lists are in and the scheduler leads, and wakes
// all gangs.
func (t *tracker) setSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = true
	for _, g := range t.gangs {
		t.changed(g)
		t.noticeBrokenBefore(g)
	}
}

// setNoGroups says whether the API server lacks PodGroups.
func (t *tracker) setNoGroups(missing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noGroups, t.tellsNoGroups = missing, false
}

// setGroup learns of a PodGroup.
func (t *tracker) setGroup(group *schedulingv1alpha1.PodGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangOf(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	old := g.group
	g.group = group
	judged := t.judgeAll(g, old)
	if old == nil || old.UID != group.UID {
		// A group of the same name is another group: it inherits nothing.
		g.attempt, g.status = attempt{}, conditionState{}
		g.bindings = bindings{placement: g.bindings.placement, failed: g.bindings.placement}
		g.failedMembers, g.deletedMembers = 0, 0
	} else if old.Generation == group.Generation && !judged {
		return
	}
	t.changed(g)
}

// updateGroup learns of a PodGroup that has changed.
func (t *tracker) updateGroup(_, after *schedulingv1alpha1.PodGroup) {
	t.setGroup(after)
}

// deleteGroup learns that a PodGroup is gone.
func (t *tracker) deleteGroup(group *schedulingv1alpha1.PodGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.gangs[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}]
	if !ok || g.group == nil || g.group.UID != group.UID {
		return
	}
	old := g.group
	g.group, g.groupless = nil, t.now()
	t.judgeAll(g, old)
	delete(t.awake, g.key)
	if g.held != heldNot {
		t.wake(g.key, 0) // to give up the room
	}
	g.attempt, g.status = attempt{}, conditionState{}
	g.bindings = bindings{placement: g.bindings.placement, failed: g.bindings.placement}
	if t.synced {
		t.report(g.key, 0) // its Pods wait for another one
	}
	t.forgetIfEmpty(g)
}

// setPod learns of a Pod that names a group, new or changed.
func (t *tracker) setPod(pod *corev1.Pod) {
	key, ok := podgroup.GroupOf(pod)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangOf(key)
	m := g.members[pod.UID]
	if m == nil {
		m = &member{pod: pod, seen: t.now()}
		g.members[pod.UID] = m
		t.judge(g, m)
		t.enter(g, m)
		t.changed(g)
		return
	}
	before, wasBound, wasStranger, generation := state(m, t.ours), m.bound(), m.isStranger(), m.pod.Generation
	g.count(m, before, -1)
	roleChanged := podgroup.RoleOf(m.pod) != podgroup.RoleOf(pod)
	// Other Pods select by labels, members each other, and plugins look at annotations.
	relabelled := roleChanged || before == memberWaiting &&
		(!maps.Equal(m.pod.Labels, pod.Labels) || !maps.Equal(m.pod.Annotations, pod.Annotations))
	if generation != pod.Generation || roleChanged || m.pod.Status.NominatedNodeName != pod.Status.NominatedNodeName {
		m.class = ""
	}
	m.pod = pod
	if pod.Spec.NodeName != "" {
		m.assumed = ""
	}
	t.judge(g, m)
	if wasBound && !m.isStranger() && pod.Status.Phase == corev1.PodFailed {
		g.failedMembers++
	}
	t.enter(g, m)
	g.settle()
	if after := state(m, t.ours); after != before || m.bound() != wasBound || m.isStranger() != wasStranger || pod.Generation != generation || relabelled {
		t.changed(g)
		if before == memberPlaced && !m.isStranger() {
			t.noticeBroken(g, pod)
		}
	}
}

// updatePod learns of a Pod that has changed, maybe from one gang to another. After a
// broken watch it may be another Pod of the same name.
func (t *tracker) updatePod(before, after *corev1.Pod) {
	if before.UID != after.UID || !isSameGang(before, after) {
		t.deletePod(before)
	}
	t.setPod(after)
}

// enter counts a member whose Pod is new or changed. The caller holds the lock.
func (t *tracker) enter(g *gang, m *member) {
	s := state(m, t.ours)
	g.count(m, s, 1)
	if s == memberWaiting {
		g.lead(m.pod)
	} else if g.leader != nil && g.leader.UID == m.pod.UID {
		g.electLeader(t.ours)
	}
}

// deletePod learns that a Pod is gone, or names another group.
func (t *tracker) deletePod(pod *corev1.Pod) {
	key, ok := podgroup.GroupOf(pod)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || g.members[pod.UID] == nil {
		return
	}
	m := g.members[pod.UID]
	before := state(m, t.ours)
	g.count(m, before, -1)
	delete(g.members, pod.UID)
	if g.leader != nil && g.leader.UID == pod.UID {
		g.electLeader(t.ours)
	}
	g.settle()
	if !m.isStranger() {
		if m.pod.Spec.NodeName != "" && m.pod.Status.Phase != corev1.PodFailed {
			g.deletedMembers++
		}
		t.changed(g)
		if before == memberPlaced {
			t.noticeBroken(g, pod)
		}
	}
	t.forgetIfEmpty(g)
}

// gate says whether a Pod that names a group may enter the scheduling queue, and if
// not, why.
func (t *tracker) gate(pod *corev1.Pod) (reason string, ok bool) {
	key, isMember := podgroup.GroupOf(pod)
	if !isMember || pod.Spec.NodeName != "" {
		return "", true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	switch {
	case g == nil || g.group == nil:
		return fmt.Sprintf("waiting for PodGroup %s", key), false
	case g.members[pod.UID] == nil || !t.synced:
		return "waiting to be seen as a member of its PodGroup", false
	case g.members[pod.UID].isStranger():
		return strangerMessage(g.group), false
	case state(g.members[pod.UID], t.ours) != memberWaiting:
		// It has its place, and only has to leave the queue.
		return "", true
	case !g.complete():
		return fmt.Sprintf("waiting for members of PodGroup %s: %s", key, missing(&g.group.Spec, g.placed.Plus(g.waiting))), false
	case g.leader.UID != pod.UID:
		return fmt.Sprintf("represented by %s in PodGroup %s", g.leader.Name, key), false
	}
	if left := t.notBefore(g).Sub(t.now()); left > 0 {
		t.wake(key, left)
		return fmt.Sprintf("PodGroup %s is backing off", key), false
	}
	return "", true
}

// missing says which members a gang lacks.
func missing(spec *schedulingv1alpha1.PodGroupSpec, have podgroup.Tally) string {
	text := fmt.Sprintf("%d of at least %d members exist", have.Total, spec.MinMember)
	for _, role := range sortedKeys(spec.MinRoleMember) {
		if least := spec.MinRoleMember[role]; have.Roles[role] < least {
			text += fmt.Sprintf(", %d of at least %d in role %s", have.Roles[role], least, role)
		}
	}
	return text
}

// awaken has the gang planned again as soon as its back-off allows.
func (t *tracker) awaken(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil {
		t.markAwake(g)
		t.wake(key, max(0, t.notBefore(g).Sub(t.now())))
	}
}

// due is the leader to offer to the scheduling queue, nil if there is none or
// nothing has changed. A gang in its back-off is put off.
func (t *tracker) due(key types.NamespacedName) *corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !t.synced || !g.complete() {
		return nil
	}
	if again := g.attempt.again; !t.isAwake(g) && !again.IsZero() {
		if left := again.Sub(t.now()); left > 0 {
			t.wake(key, left)
			return nil
		}
		g.attempt.again = time.Time{}
		t.markAwake(g)
	}
	if !t.isAwake(g) {
		return nil
	}
	if left := t.notBefore(g).Sub(t.now()); left > 0 {
		t.wake(key, left)
		return nil
	}
	return g.leader
}

// idle wakes the gangs that are complete and have not been planned for a while:
// the backstop for a wake-up that was lost. One that is being planned for the first
// time has no back-off yet.
func (t *tracker) idle(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		last := t.notBefore(g)
		if last.IsZero() {
			last = g.attempt.first
		}
		if g.complete() && t.now().Sub(last) > after {
			t.markAwake(g)
			t.wake(g.key, 0)
		}
	}
}
