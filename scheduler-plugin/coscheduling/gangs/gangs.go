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

// Gangs holds the PodGroups and members of all gangs, and the queue of complete gangs. It is safe for concurrent use.
//
// Invariant: once synced is true, the queue has all complete gangs and no others.
//
// Lock order: kube-scheduler's queue calls Gangs while it holds its own lock. So Gangs never calls kube-scheduler's
// queue. Instead, Gangs collects in Due what is to be done, and another goroutine does it.
type Gangs struct {
	config Config

	due due

	mu    sync.RWMutex
	gangs map[dialect.Key]*gang
	// withPlaced has the gangs with placed members. There may be many more that wait.
	withPlaced map[dialect.Key]*gang
	// named has the gang in which each Pod is recorded. The Pod may name another gang now, because a PodGroup API was
	// turned on, or an owner has changed.
	named map[types.UID]dialect.Key
	// queue decides which gang is planned next.
	queue *queue.Queue
	// synced reports that the initial lists are complete and that the scheduler leads. Before that, placed members may
	// still be unknown, so nothing is planned, reported or evicted.
	synced bool
	// unread has the reasons why PodGroups can't be read, by place; see SetUnread.
	unread map[source]string
	// unlisted has the PodGroup APIs with PodGroups that may not be known yet; see SetUnlisted.
	unlisted map[dialect.Dialect]bool
	// staged has the time at which a gang has to be looked at again. There is a time for gangs in stages that still
	// wait for more members, and for gangs with a deleted PodGroup that may be recreated.
	staged map[dialect.Key]time.Time
}

// New returns Gangs without any gang.
func New(config Config) *Gangs {
	return &Gangs{config: config, due: due{stirred: make(chan struct{}, 1)}, gangs: make(map[dialect.Key]*gang), withPlaced: make(map[dialect.Key]*gang), queue: queue.New(), unread: make(map[source]string), unlisted: make(map[dialect.Dialect]bool), staged: make(map[dialect.Key]time.Time), named: make(map[types.UID]dialect.Key)}
}

// incompleteReportDelay is how long the Reporter waits before it reports missing members. The members may be about to
// be created.
const incompleteReportDelay = time.Second

// renominatedReportDelay is how long after a change of one nomination the Reporter checks all nominations of the gang.
// Usually several nominations change at the same time.
const renominatedReportDelay = time.Second

// SetSynced records that the initial lists are complete and the scheduler leads. From then on all gangs are planned.
func (t *Gangs) SetSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = true
	for _, g := range t.gangs {
		t.begin(g)
	}
}

// begin makes a gang take part from now on. The caller holds the lock.
func (t *Gangs) begin(g *gang) {
	recallStage(g)
	// An earlier scheduler may have died while it bound the gang.
	g.starts = g.bound.Total > 0 && !g.scheduled() && g.group != nil && !news.WasScheduled(g.group.Conditions)
	t.changed(g)
	// An earlier scheduler may have died before it dissolved a broken gang.
	if g.wasBroken() || g.isMarked() {
		t.dissolveIfBroken(g)
	}
	if t.isWhole(g.key) {
		g.lost = podgroup.Tally{} // from now on this scheduler sees which members go
	}
}

// SetUnlisted sets whether PodGroups of a PodGroup API may be unknown, because the API server could not list them in
// time. While that is so, the gangs of that API wait, and their running Pods are not preempted.
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

// SetGroup records a new or changed PodGroup.
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
		// Another program may have changed the status, or waits for it.
		t.due.report(g.key, reportDelay(group))
	case !another && !news.Same(old.Conditions, group.Conditions) && !news.Same(g.record.Conditions, group.Conditions):
		t.due.report(g.key, incompleteReportDelay) // another program has changed the conditions
	}
}

// reportDelay returns how long the Reporter waits after a change of a group of another PodGroup API before it looks at
// the gang.
func reportDelay(group *dialect.Group) time.Duration {
	if group.IsAwaited() {
		return 0
	}
	return incompleteReportDelay
}

// DeleteGroup records that the PodGroup with this UID is gone.
func (t *Gangs) DeleteGroup(key dialect.Key, uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) {
		return
	}
	g.loseGroup(t.config.Now())
	if len(g.minima) > 0 { // if no other PodGroup comes, the gang gets an implied group
		g.awaited = t.config.Now().Add(impliedGrace)
		t.staged[key] = g.awaited
	}
	t.queue.Forget(g.key, t.config.Now())
	t.due.stir() // another gang may be next, and a reservation may end
	if t.synced {
		t.due.report(g.key, 0) // its Pods wait for another PodGroup
	}
	t.forgetIfEmpty(g)
}

// SetPod records a new or changed Pod. If the Pod names another gang than before, SetPod removes it from the earlier
// gang.
func (t *Gangs) SetPod(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setPod(pod)
}

// SetPodAgain records the present state of a Pod. It is for Pods that may name another gang than before although they
// have not changed. If the Pod is gone, it does nothing.
func (t *Gangs) SetPodAgain(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.config.Current(pod); now != nil {
		t.setPod(now)
	}
}

// setPod is SetPod for callers that hold the lock.
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
		t.due.report(key, 0) // the group's status counts Pods by phase
	}
	if t.synced && g.isBoundElsewhere(m, pod) {
		t.due.collected.Elsewhere = append(t.due.collected.Elsewhere, Elsewhere{pod, m.seen})
		t.due.stir()
	}
	hasEnded := m.pod.Status.Phase != pod.Status.Phase && pod.Status.Phase == corev1.PodSucceeded
	isNews, wasPlaced := g.see(m, pod, t.config.Now())
	t.settle(g)
	if isNews || hasEnded { // a Pod that has succeeded announces no members, lends no rank, and ties the others to no domain
		t.changed(g)
	}
	if isNews && wasPlaced && pod.DeletionTimestamp != nil { // a Pod that has ended by itself was not preempted, even if marked
		m.spared = g.spares()
		noticeBroken(t, g, m)
	}
}

// HasNoPlace reports whether a Pod is a member that has no node and is not about to be bound.
func (t *Gangs) HasNoPlace(pod *corev1.Pod) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, m := t.memberOf(pod)
	return m != nil && m.node() == ""
}

// DeletePod records that a Pod is gone.
func (t *Gangs) DeletePod(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletePod(pod)
}

// deletePod removes a Pod from the gang in which it is recorded. The caller holds the lock.
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
		if wasPlaced && !m.succeeded { // a Pod that has succeeded was not preempted, even if marked
			noticeBroken(t, g, m)
		}
	}
	t.forgetIfEmpty(g)
}

// KeyOf returns the key of the gang that a Pod names, false if the Pod names none.
func (t *Gangs) KeyOf(pod *corev1.Pod) (dialect.Key, bool) {
	return t.config.Links.KeyOf(pod)
}

// KeepsOut reports whether a Pod must stay out of kube-scheduler's queue, because it names a gang. It returns false for
// members of a loose gang, which are scheduled as ordinary Pods.
func (t *Gangs) KeepsOut(pod *corev1.Pod) bool {
	key, named := t.KeyOf(pod)
	return named && !t.IsLoose(key)
}

// gangOf returns the gang with a key, and creates the gang if it does not exist. The caller holds the lock.
func (t *Gangs) gangOf(key dialect.Key) *gang {
	g, ok := t.gangs[key]
	if !ok {
		g = newGang(key, &t.config.Rules, t.withPlaced, t.config.Now())
		g.unseen = isUnseen(t, key)
		t.gangs[key] = g
	}
	return g
}

// memberOf returns the gang that a Pod names, and the Pod's record there; the Pod may be a stranger. The record is nil
// if the Pod is not recorded in that gang. The caller holds the lock.
func (t *Gangs) memberOf(pod *corev1.Pod) (*gang, *member) {
	key, named := t.KeyOf(pod)
	if !named {
		return nil, nil
	}
	return t.memberIn(key, pod)
}

// memberIn returns a gang, and the record of a Pod in it. The record is nil if the Pod is not recorded in that gang.
// The caller holds the lock.
func (t *Gangs) memberIn(key dialect.Key, pod *corev1.Pod) (*gang, *member) {
	g := t.gangs[key]
	if g == nil {
		return nil, nil
	}
	return g, g.members[pod.UID]
}

// forgetIfEmpty removes a gang that has neither a PodGroup nor Pods. The caller holds the lock.
func (t *Gangs) forgetIfEmpty(g *gang) {
	if g.group == nil && len(g.members) == 0 {
		delete(t.gangs, g.key)
		t.queue.Forget(g.key, t.config.Now())
	}
}

// changed does what follows from a change of a gang's counts, in this order. It wakes other gangs if the gang's
// priority fell. It updates the gang's stage, and what the gang may reserve for members to come. It puts the gang into
// the queue or removes it. It makes the Reporter look at the gang. Call changed after each change, with the lock held.
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
	if g.noteRank() {
		t.offer(g.key) // gangs that outrank this gang only now may preempt it, or use its reservation
	}
	t.restage(g)
	announce(g)
	t.enqueue(g)
	t.reportChange(g)
}

// offer wakes the gangs that may find room now, because the gang `by` has given up a reservation, or has changed so
// that others may preempt it or use its reservation.
func (t *Gangs) offer(by dialect.Key) {
	t.queue.Happened(queue.Event{Kind: queue.Anything, By: by}, t.config.Now())
	t.due.stir()
}

// restage updates the minimum of a gang that starts in stages.
func (t *Gangs) restage(g *gang) {
	if !isStaged(g) {
		return
	}
	if restage(g, t.config.Now()); g.staging.gathers {
		t.staged[g.key] = g.staging.until
	}
}

// reportChange makes the Reporter look at a gang: at once if there is probably something to report, else after
// incompleteReportDelay.
func (t *Gangs) reportChange(g *gang) {
	if g.complete() || g.scheduled() {
		t.due.report(g.key, 0)
		return
	}
	t.due.report(g.key, incompleteReportDelay)
}

// enqueue puts a gang into the queue if the gang is complete, and removes it from the queue otherwise. The caller holds
// the lock.
func (t *Gangs) enqueue(g *gang) {
	now := t.config.Now()
	t.due.stir() // another gang may be next, and a reservation may end
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

// settle does nothing until a gang's minimum is bound. Then, the gang's waiting time starts anew when members wait
// again. The back-off for failed bindings also ends, unless a binding is under way, or the last placement failed and
// members still wait. The caller holds the lock.
func (t *Gangs) settle(g *gang) {
	if !g.scheduled() {
		return
	}
	t.queue.Settled(g.key)
	b := &g.bindings
	if b.message == "" || b.lastFailed() && g.waiting.Total > 0 || g.isBinding() {
		return
	}
	b.message = ""
	t.queue.Bound(g.key, t.config.Now())
}

// noticeBroken is called when a gang has lost a placed member. If the member was preempted and too few members are
// left, it makes the rest of the gang due for eviction. The caller holds the lock.
func noticeBroken(t *Gangs, g *gang, lost *member) {
	if lost.isPreempted() {
		t.dissolveIfBroken(g)
	}
}

// dissolveIfBroken makes the rest of a gang due for eviction if fewer members are left than the minimum. The caller
// holds the lock.
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

// IsLoose reports whether the members of a gang are ordinary Pods, which kube-scheduler places.
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

// stage looks again at each gang whose time in t.staged has come: a staged gang for which no further member has come,
// or a gang whose deleted PodGroup was not recreated. It returns the earliest time that is left in t.staged, zero for
// none. The caller holds the lock.
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
