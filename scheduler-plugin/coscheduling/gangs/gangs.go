// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Gangs knows the gangs: their PodGroups, their members and who of them is in the queue. It is
// safe for concurrent use.
//
// Invariant: once it is synced, just the gangs that are complete are in the queue.
//
// Lock order: the scheduling queue calls Gangs with a lock of its own held. So Gangs never
// calls the queue: what is to be done is Due, which another goroutine takes.
type Gangs struct {
	config Config

	due due

	mu    sync.RWMutex
	gangs map[dialect.Key]*gang
	// named is the gang that knows a Pod. What the Pod names may be another one by now: a dialect was turned on, or what is
	// known of an owner has changed.
	named map[types.UID]dialect.Key
	// queue says which gang is next.
	queue *queue.Queue
	// synced says that all that existed at the start has been seen, and that the
	// scheduler leads. Before that, members that are placed may still be unknown:
	// nothing is planned, told or evicted.
	synced bool
	// unread is why no PodGroups of a dialect can be seen, there or anywhere, empty if they can; see SetUnread.
	unread map[place]string
	// unlisted says of which dialects the API server may have groups that are not known yet; see SetUnlisted.
	unlisted map[dialect.Dialect]bool
	// staged is when the stage is over of gangs to which members are coming, or no PodGroup is awaited any more of
	// those that have lost theirs.
	staged map[dialect.Key]time.Time
}

// New makes Gangs that know of none.
func New(config Config) *Gangs {
	return &Gangs{config: config, due: due{stirred: make(chan struct{}, 1)}, gangs: make(map[dialect.Key]*gang), queue: queue.New(), unread: make(map[place]string), unlisted: make(map[dialect.Dialect]bool), staged: make(map[dialect.Key]time.Time), named: make(map[types.UID]dialect.Key)}
}

// incompleteReportDelay is how long a gang is left alone while its Pods are
// being created before its condition says that some are missing.
const incompleteReportDelay = time.Second

// renominatedReportDelay is when it is looked whether the nominations of a gang are as they
// should be after one has changed. Mostly others change in the same moment.
const renominatedReportDelay = time.Second

// SetSynced says that the initial lists are in and the scheduler leads, and wakes
// all gangs.
func (t *Gangs) SetSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = true
	for _, g := range t.gangs {
		t.begin(g)
	}
}

// begin has the gang be planned from now on. The caller holds the lock.
func (t *Gangs) begin(g *gang) {
	recallStage(g)
	// The scheduler before may have died while it bound the gang.
	g.starts = g.bound.Total > 0 && !g.scheduled() && g.group != nil && !news.WasScheduled(g.group.Conditions)
	t.changed(g)
	// It may be that a gang was broken and not dissolved by the scheduler before.
	if g.wasBroken() || g.isMarked() {
		t.dissolveIfBroken(g)
	}
	if t.isWhole(g.key) {
		g.lost = podgroup.Tally{} // this scheduler sees itself who goes
	}
}

// SetUnlisted says whether there may be PodGroups of a dialect that are not known yet, as the API server could not
// list them in time. The gangs of the dialect wait, and those of their Pods that run are left alone, until that is over.
func (t *Gangs) SetUnlisted(d dialect.Dialect, unlisted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unlisted[d] == unlisted {
		return
	}
	t.unlisted[d] = unlisted
	for key, g := range t.gangs {
		switch {
		case key.Dialect != d || !t.synced:
		case unlisted:
			t.changed(g)
		default:
			t.begin(g)
		}
	}
}

// SetGroup learns of a PodGroup, new or changed.
func (t *Gangs) SetGroup(group *dialect.Group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangOf(group.Key)
	old := g.group
	another, isNews := g.setGroup(group, t.config.Now())
	if another {
		t.queue.Forget(g.key, t.config.Now())
	}
	if isNews {
		t.changed(g)
	}
	switch {
	case !t.synced:
	case group.Key.Dialect != dialect.Own:
		// Somebody may have changed its status, or waits for it.
		t.due.report(g.key, reportDelay(group))
	case !another && !news.Same(old.Conditions, group.Conditions) && !news.Same(g.record.Conditions, group.Conditions):
		t.due.report(g.key, incompleteReportDelay) // somebody else has changed them
	}
}

// reportDelay is in what time a group of another dialect is told of when it has changed.
func reportDelay(group *dialect.Group) time.Duration {
	if group.IsAwaited() {
		return 0
	}
	return incompleteReportDelay
}

// DeleteGroup learns that the PodGroup of a gang is gone. The UID is that of the PodGroup.
func (t *Gangs) DeleteGroup(key dialect.Key, uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) {
		return
	}
	g.loseGroup(t.config.Now())
	if len(g.minima) > 0 { // its Pods say enough, if no other one comes
		g.awaited = t.config.Now().Add(impliedGrace)
		t.staged[key] = g.awaited
	}
	t.queue.Forget(g.key, t.config.Now())
	t.due.stir() // another one may be next, and room may be given up
	if t.synced {
		t.due.report(g.key, 0) // its Pods wait for another one
	}
	t.forgetIfEmpty(g)
}

// SetPod learns of a Pod, new or changed. A Pod that names another gang by now leaves the gang that knows it.
func (t *Gangs) SetPod(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setPod(pod)
}

// SetPodAgain learns of a Pod as it is by now, if it is still there: the Pod may name another gang than before, though it
// has not changed. No Pod is set again after DeletePod.
func (t *Gangs) SetPodAgain(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.config.Current(pod); now != nil {
		t.setPod(now)
	}
}

// setPod learns of a Pod. The caller holds the lock.
func (t *Gangs) setPod(pod *corev1.Pod) {
	key, named := t.KeyOf(pod)
	if before, known := t.named[pod.UID]; known && (!named || before != key) {
		t.deletePod(pod)
	}
	if !named {
		return
	}
	t.named[pod.UID] = key
	g := t.gangOf(key)
	m := g.members[pod.UID]
	if m == nil {
		g.add(pod, t.config.Now())
		t.changed(g)
		return
	}
	if m.pod.Status.NominatedNodeName != pod.Status.NominatedNodeName && t.synced {
		t.due.report(key, renominatedReportDelay)
	}
	if key.Dialect != dialect.Own && m.pod.Status.Phase != pod.Status.Phase && t.synced {
		t.due.report(key, 0) // the group counts its Pods by their phases
	}
	if t.synced && g.isBoundElsewhere(m, pod) {
		t.due.collected.Elsewhere = append(t.due.collected.Elsewhere, Elsewhere{pod, m.seen})
		t.due.stir()
	}
	hasEnded := m.pod.Status.Phase != pod.Status.Phase && pod.Status.Phase == corev1.PodSucceeded
	isNews, wasPlaced := g.see(m, pod, t.config.Now())
	if hasEnded && !isNews && (!g.announced.IsZero() || g.ranked != nil && g.rank().Priority != *g.ranked) {
		t.changed(g) // it may have been the last one for which others may come, or the one of the highest priority
	}
	t.settle(g)
	if isNews {
		t.changed(g)
		if wasPlaced && pod.DeletionTimestamp != nil { // else it has ended by itself, though it may have been marked
			m.spared = g.spares()
			noticeBroken(t, g, m)
		}
	}
}

// HasNoPlace says whether a Pod is a member that has no node, nor is about to be bound to one.
func (t *Gangs) HasNoPlace(pod *corev1.Pod) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, m := t.memberOf(pod)
	return m != nil && m.node() == ""
}

// DeletePod learns that a Pod is gone.
func (t *Gangs) DeletePod(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletePod(pod)
}

// deletePod has a Pod leave the gang that knows it. The caller holds the lock.
func (t *Gangs) deletePod(pod *corev1.Pod) {
	key, known := t.named[pod.UID]
	delete(t.named, pod.UID)
	g, m := t.memberIn(key, pod)
	if !known || m == nil {
		return
	}
	isNews, wasPlaced := g.drop(m, t.config.Now())
	m.spared = m.spared || wasPlaced && g.spares()
	if !t.synced || !t.isWhole(key) {
		g.noteLost(m, wasPlaced)
	}
	t.settle(g)
	if isNews {
		t.changed(g)
		if wasPlaced && !m.succeeded { // one that has may have been marked before it did
			noticeBroken(t, g, m)
		}
	}
	t.forgetIfEmpty(g)
}

// KeyOf is the key of the gang that a Pod names, false if it names none.
func (t *Gangs) KeyOf(pod *corev1.Pod) (dialect.Key, bool) {
	return t.config.Links.KeyOf(pod)
}

// KeepsOut says whether a Pod is none that kube-scheduler places by itself: it names a gang. The members of a loose
// gang are ordinary Pods.
func (t *Gangs) KeepsOut(pod *corev1.Pod) bool {
	key, named := t.KeyOf(pod)
	return named && !t.IsLoose(key)
}

// gangOf finds or makes the gang of a key. The caller holds the lock.
func (t *Gangs) gangOf(key dialect.Key) *gang {
	g, ok := t.gangs[key]
	if !ok {
		g = newGang(key, &t.config.Rules, t.config.Now())
		g.unseen = isUnseen(t, key)
		t.gangs[key] = g
	}
	return g
}

// memberOf is what is known of a Pod, a stranger among others, and the gang of the group that
// it names; nil if nothing is known of the Pod. The caller holds the lock.
func (t *Gangs) memberOf(pod *corev1.Pod) (*gang, *member) {
	key, named := t.KeyOf(pod)
	if !named {
		return nil, nil
	}
	return t.memberIn(key, pod)
}

// memberIn is what is known of a Pod as one of a gang, and the gang; nil if nothing is known of the Pod there. The
// caller holds the lock.
func (t *Gangs) memberIn(key dialect.Key, pod *corev1.Pod) (*gang, *member) {
	g := t.gangs[key]
	if g == nil {
		return nil, nil
	}
	return g, g.members[pod.UID]
}

// forgetIfEmpty drops a gang that nothing is known of any more. The caller holds the lock.
func (t *Gangs) forgetIfEmpty(g *gang) {
	if g.group == nil && len(g.members) == 0 {
		delete(t.gangs, g.key)
		t.queue.Forget(g.key, t.config.Now())
	}
}

// changed is called after each transition of a gang, which has changed what the gang counts. It passes the change on, in
// this order: to the other gangs, to the stage, to the room for members to come, to the queue and to the Reporter. The
// caller holds the lock.
func (t *Gangs) changed(g *gang) {
	g.begun()
	switch {
	case !t.synced:
		return
	case t.unlisted[g.key.Dialect]:
		t.queue.Leave(g.key, t.config.Now())
		t.due.report(g.key, incompleteReportDelay)
		return
	}
	if g.fell() {
		t.offer(g.key) // those that outrank it only now may have its place, or what is kept for it
	}
	t.restage(g)
	announce(g)
	t.enqueue(g)
	t.reportChange(g)
}

// offer has gangs be planned that an event may help: what a gang had or kept is free for those that it was ahead of.
func (t *Gangs) offer(by dialect.Key) {
	t.queue.Happened(queue.Event{Kind: queue.Anything, By: by}, t.config.Now())
	t.due.stir()
}

// restage has a gang that starts in stages gather the members of the next one.
func (t *Gangs) restage(g *gang) {
	if !isStaged(g) {
		return
	}
	if restage(g, t.config.Now()); g.staging.gathers {
		t.staged[g.key] = g.staging.until
	}
}

// reportChange has the Reporter look at a gang: at once if there is probably something to write, and a little later if members
// may still be being created.
func (t *Gangs) reportChange(g *gang) {
	if g.complete() || g.scheduled() {
		t.due.report(g.key, 0)
		return
	}
	t.due.report(g.key, incompleteReportDelay)
}

// enqueue has the gang be in the queue if it is complete. The caller holds the lock.
func (t *Gangs) enqueue(g *gang) {
	now := t.config.Now()
	t.due.stir() // another one may be next, and room may be given up
	if g.complete() {
		g.incompleteSince = time.Time{}
		t.queue.Enter(g.rank(), g.lacksMinimum(), now)
		return
	}
	if g.incompleteSince.IsZero() {
		g.incompleteSince = now
	}
	t.queue.Leave(g.key, now)
	if g.waiting.Total > 0 {
		t.due.collected.Idle = append(t.due.collected.Idle, g.key)
	}
}

// settle has the gang begin anew once its minimum is bound: with the time since when it
// waits and, if none of the last placement has failed or nobody is left to be bound,
// with its back-off. The caller holds the lock.
func (t *Gangs) settle(g *gang) {
	if !g.scheduled() {
		return
	}
	t.queue.Settled(g.key, t.config.Now())
	b := &g.bindings
	if b.message == "" || b.lastFailed() && g.waiting.Total > 0 || g.isBinding() {
		return
	}
	b.message = ""
	t.queue.Bound(g.key, t.config.Now())
}

// noticeBroken asks for the rest of a gang to be dissolved when preemption has just taken a
// member that was placed, and too few are left. A member that has been going for a while
// was judged when it went. The caller holds the lock.
func noticeBroken(t *Gangs, g *gang, lost *member) {
	if lost.isPreempted() {
		t.dissolveIfBroken(g)
	}
}

// dissolveIfBroken asks for the rest of a gang to be dissolved that has lost a member, if
// too few are left. The caller holds the lock.
func (t *Gangs) dissolveIfBroken(g *gang) {
	if !t.synced || t.unlisted[g.key.Dialect] {
		return
	}
	if rest := g.breakUp(t.config.Current); len(rest) > 0 {
		t.changed(g)
		t.due.collected.Broken = append(t.due.collected.Broken, Broken{g.group, rest})
		t.due.stir()
	}
}

// IsLoose says whether the members of a gang are ordinary Pods, which are placed by others.
func (t *Gangs) IsLoose(key dialect.Key) bool {
	if key.Dialect != dialect.Native && key.Dialect != dialect.Own {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	return g != nil && g.isLoose()
}

// Pods returns the Pods that name a gang.
func (t *Gangs) Pods(key dialect.Key) []*corev1.Pod {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil {
		return nil
	}
	pods := make([]*corev1.Pod, 0, len(g.members))
	for _, m := range g.members {
		pods = append(pods, m.pod)
	}
	return pods
}

// stage brings gangs up to date whose stage is over, or that await no PodGroup any more, and is when the next one is;
// zero for none. The caller holds the lock.
func (t *Gangs) stage(now time.Time) (next time.Time) {
	for key, until := range t.staged {
		if until.After(now) {
			next = times.Sooner(next, until)
			continue
		}
		delete(t.staged, key)
		if g := t.gangs[key]; g != nil {
			imply(g, now)
			t.changed(g)
		}
	}
	return next
}
