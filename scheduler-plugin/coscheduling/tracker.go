// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// tracker knows the gangs: their PodGroups, their members and who of them is in line. It is
// safe for concurrent use.
//
// Invariant: once it is synced, just the gangs that are complete are in line.
//
// Lock order: the scheduling queue calls the tracker with a lock of its own held. So the
// tracker never calls the queue; it tells stir and report, which only leave a note.
type tracker struct {
	ours func(schedulerName string) bool
	now  func() time.Time
	// stir says that somebody may be next, or that room may be held for nobody.
	stir func()
	// report asks for conditions to be written after d.
	report func(key types.NamespacedName, d time.Duration)

	// dissolve asks for the rest of a gang to be deleted. It must not block.
	dissolve func(group *schedulingv1alpha1.PodGroup, rest []*corev1.Pod)
	// idle tells of a gang that is not complete, of which members wait.
	idle func(key types.NamespacedName)
	// classPriority is the value of a PriorityClass, false if there is none of
	// the name.
	classPriority func(name string) (int32, bool)

	mu    sync.RWMutex
	gangs map[types.NamespacedName]*gang
	// line says who of them is next.
	line    *line.Line
	helpful []fwk.ClusterEvent
	// synced says that all that existed at the start has been seen, and that the
	// scheduler leads. Before that, members that are placed may still be unknown:
	// nothing is planned, written or evicted.
	synced bool
	// noGroups says that the API server does not serve PodGroups, so far.
	noGroups bool
	// tellsNoGroups says that Pods are told so; see tracker_status.go.
	tellsNoGroups bool
}

func newTracker(ours func(string) bool, now func() time.Time, stir func(), report func(types.NamespacedName, time.Duration)) *tracker {
	return &tracker{
		ours: ours, now: now, stir: stir, report: report,
		dissolve:      func(*schedulingv1alpha1.PodGroup, []*corev1.Pod) {},
		idle:          func(types.NamespacedName) {},
		classPriority: func(string) (int32, bool) { return 0, false },
		gangs:         make(map[types.NamespacedName]*gang),
		line:          line.New(),
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
		t.line.Forget(g.key, t.now())
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
		g.brokenUp = time.Time{}
		t.line.Enter(t.rank(g), g.lacksMinimum(), t.now())
		t.stir()
		t.report(g.key, 0)
		return
	}
	if g.brokenUp.IsZero() {
		g.brokenUp = t.now()
	}
	t.line.Leave(g.key, t.now())
	t.stir() // another one may be next, and room may be given up
	if g.waiting.Total > 0 {
		t.idle(g.key)
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
		t.line.Forget(g.key, t.now())
		g.record = status.Record{}
		g.held = heldNot
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
	t.line.Forget(g.key, t.now())
	t.stir() // another one may be next, and room may be given up
	g.record = status.Record{}
	g.held = heldNot
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
	// Other Pods select by labels, members each other, and plugins look at annotations and
	// at the claims that were made for a Pod.
	relabelled := roleChanged || before == memberWaiting &&
		(!maps.Equal(m.pod.Labels, pod.Labels) || !maps.Equal(m.pod.Annotations, pod.Annotations) ||
			!equality.Semantic.DeepEqual(m.pod.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses))
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
	t.settle(g)
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
	g.count(m, state(m, t.ours), 1)
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
	t.settle(g)
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

// awaken has the gang planned again as soon as its back-off allows.
func (t *tracker) awaken(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.Wake(key, t.now())
	t.stir()
}

func isSameGang(a, b *corev1.Pod) bool {
	was, _ := podgroup.GroupOf(a)
	is, _ := podgroup.GroupOf(b)
	return was == is
}
