// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Reader reads the state of gangs for the Reporter, for metrics and for reservations. It is safe for concurrent use.
type Reader struct {
	Of *Gangs
}

// Groups returns the groups of all gangs that have one, in no order.
func (r Reader) Groups() []*dialect.Group {
	r.Of.mu.RLock()
	defer r.Of.mu.RUnlock()
	groups := make([]*dialect.Group, 0, len(r.Of.gangs))
	for _, g := range r.Of.gangs {
		if g.group != nil {
			groups = append(groups, g.group)
		}
	}
	return groups
}

// Group returns the group of a gang, nil if the gang has none or does not exist.
func (r Reader) Group(key dialect.Key) *dialect.Group {
	r.Of.mu.RLock()
	defer r.Of.mu.RUnlock()
	if g := r.Of.gangs[key]; g != nil {
		return g.group
	}
	return nil
}

// Look returns the state of a gang with its waiting Pods. It returns false if nothing may be reported; see
// status.Gangs.
func (r Reader) Look(key dialect.Key) (news.Gang, bool) {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !tells(t, g) {
		return news.Gang{}, false
	}
	known := known(t, g)
	if key.Dialect != dialect.Own {
		var ours bool
		known.Census, known.Member, ours = census(g)
		// A gang that was preempted as a whole may have no Pod left.
		known.Theirs = !ours && !(g.preempted && g.record.Status != nil)
	}
	if most := int(g.waiting.Total) + g.strangers; most > 0 {
		known.Pods = make([]news.Pod, 0, most)
		for _, m := range g.members {
			if pod, ok := waitingPod(g, m); ok {
				known.Pods = append(known.Pods, pod)
			}
		}
	}
	known.Unserved = unserved(g)
	if g.isLoose() {
		known.Ordinary = ordinaryPods(g)
	}
	return withOwnTallies(known), true
}

// LookAt returns a waiting Pod, and the state of the Pod's gang without other Pods. It returns false if the Pod no
// longer waits, or if nothing may be reported.
func (r Reader) LookAt(key dialect.Key, uid types.UID) (news.Gang, news.Pod, bool) {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !tells(t, g) || g.members[uid] == nil {
		return news.Gang{}, news.Pod{}, false
	}
	pod, ok := waitingPod(g, g.members[uid])
	return withOwnTallies(known(t, g)), pod, ok
}

// Remember stores what the Reporter wrote about a group.
func (r Reader) Remember(group *dialect.Group, record news.Record) {
	t := r.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[group.Key]; g != nil && g.isOf(group.UID) {
		g.record = record
	}
}

// tells reports whether the Reporter may report on a gang: the initial lists are complete, and this scheduler leads. If
// the gang's PodGroup API could not be listed, reports are allowed only while the gang has no known PodGroup. The
// caller holds the lock.
func tells(t *Gangs, g *gang) bool {
	return t.synced && (g.group == nil || !t.unlisted[g.key.Dialect])
}

// known returns the state of a gang, without its Pods. The result shares the gang's tallies, so the caller holds the
// lock.
func known(t *Gangs, g *gang) news.Gang {
	known := news.Gang{
		Key: g.key, Group: g.group, Missing: g.groupless, Unread: whyUnread(t, g.key), Seen: g.seen, GroupSeen: g.groupSeen,
		Waiting: g.waiting, Placed: g.placed, Bound: g.bound, Failed: g.failedMembers, Deleted: g.deletedMembers,
		Minima: saidMinima(g), Kept: g.kept, Preempted: g.preempted, Unbound: g.bindings.message, Assumed: g.bindings.placement > 0, Record: g.record,
		BackOff: t.queue.BackOff(g.key), Foreign: g.phaseWriter.foreign, YieldsUntil: g.phaseWriter.until,
	}
	known.Slow, known.NextSlow = slow(g, t.config.Now())
	if told, refused := t.queue.Told(g.key); refused {
		known.Refusal = &told
	}
	if len(g.priorities) > 0 {
		known.Highest = new(highest(g.priorities))
	}
	if g.group != nil {
		if value, ok := g.rules.priorityOf(g.group); ok {
			known.Class = &value
		}
	}
	return known
}

// slow returns the members that take long to be bound. next is when the next member will count as slow, zero for none.
func slow(g *gang, now time.Time) (slow []news.SlowMember, next time.Time) {
	if g.bindings.placement == 0 || g.bound.Total == g.placed.Total {
		return nil, time.Time{}
	}
	for _, m := range g.members {
		if m.assumed == "" || g.state(m) != memberPlaced {
			continue
		}
		if at := m.placedSince.Add(news.BindingPatience(m.pod)); at.After(now) {
			next = times.Sooner(next, at)
		} else {
			slow = append(slow, news.SlowMember{Pod: m.pod, Node: m.assumed, Since: m.placedSince})
		}
	}
	news.SortSlow(slow)
	return slow, next
}

// withOwnTallies copies the tallies, which later events change.
func withOwnTallies(known news.Gang) news.Gang {
	for _, tally := range []*podgroup.Tally{&known.Waiting, &known.Placed, &known.Bound} {
		*tally = tally.Plus(podgroup.Tally{})
	}
	return known
}

// waitingPod returns the Pod of a waiting member. It also returns the Pod of a stranger (a Pod that names the group but
// is no member) that would wait as a member. It returns false for other Pods.
func waitingPod(g *gang, m *member) (news.Pod, bool) {
	ignored := g.rules.Links.Ignored(m.pod)
	if m.isStranger() {
		return news.Pod{Pod: m.pod, Ignored: ignored, Stranger: true, Since: m.strangerSince}, m.waitsInVain(g.rules.Serves)
	}
	return news.Pod{Pod: m.pod, Ignored: ignored, Since: m.seen, Nominee: g.nominees[m.pod.UID]}, g.state(m) == memberWaiting
}

// unserved counts the members with a scheduler name that is not served here, by that name. The result is nil if the
// gang can have its minimum without these members.
func unserved(g *gang) map[string]int {
	if g.group == nil || g.group.HeldBy(g.placed, g.waiting) {
		return nil
	}
	var counts map[string]int
	for _, m := range g.members {
		name := m.pod.Spec.SchedulerName
		if g.state(m) != memberOut || m.isStranger() || m.leaving || m.pod.DeletionTimestamp != nil || m.pod.Status.Phase == corev1.PodFailed || g.rules.Serves(name) {
			continue
		}
		if counts == nil {
			counts = make(map[string]int)
		}
		counts[name]++
	}
	return counts
}

// ordinaryPods returns the Pods of a loose gang (its Pods are placed one by one, by kube-scheduler) that also name
// other gangs. These other gangs are ignored, because a Pod belongs to one gang only. Pods that have ended are left
// out.
func ordinaryPods(g *gang) []news.Pod {
	var pods []news.Pod
	for _, m := range g.members {
		if m.isStranger() || m.pod.Status.Phase == corev1.PodSucceeded || m.pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if ignored := g.rules.Links.Ignored(m.pod); len(ignored) > 0 {
			pods = append(pods, news.Pod{Pod: m.pod, Ignored: ignored, Since: m.seen})
		}
	}
	return pods
}

// IdleMembers returns the waiting members of a gang that can't be planned yet: for its minimum too few members exist,
// its group is halted, or the gang waits for further members that its owner creates. It returns nil if the gang can be
// planned.
func (r Reader) IdleMembers(key dialect.Key) []*corev1.Pod {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || g.complete() {
		return nil
	}
	var waiting []*corev1.Pod
	for _, m := range g.members {
		if g.state(m) == memberWaiting {
			waiting = append(waiting, m.pod)
		}
	}
	return waiting
}

// CountWaiting counts the waiting gangs by reason. In a scheduler that does not lead it counts none, so that sums over
// replicas are right.
func (r Reader) CountWaiting() map[string]int {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := make(map[string]int)
	for _, g := range t.gangs {
		if !t.synced || g.group == nil || g.waiting.Total == 0 {
			continue
		}
		known := known(t, g)
		if reason := known.WaitsFor(); reason != "" {
			counts[reason]++
		}
	}
	return counts
}

// Standings returns the Standing of each gang with placed members.
func (r Reader) Standings() map[dialect.Key]*Standing {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[dialect.Key]*Standing)
	for key, g := range t.withPlaced {
		if g.group == nil {
			continue
		}
		one := &Standing{Group: lastHeld(g), Rank: g.worth(), Placed: g.placed.Plus(podgroup.Tally{}), GoesWhole: g.goesWhole()}
		if !g.spares() && g.complete() {
			if _, refused := t.queue.Told(key); refused {
				one.WaitsSince = t.queue.Since(key)
			}
		}
		all[key] = one
	}
	return all
}

// LowestPlaced returns the lowest priority of the gangs that have placed members, math.MaxInt32 if there are none.
func (r Reader) LowestPlaced() int32 {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	lowest := int32(math.MaxInt32)
	for _, g := range t.withPlaced {
		if g.group != nil {
			lowest = min(lowest, g.worth().Priority)
		}
	}
	return lowest
}

// Waits reports whether the gang of the PodGroup with this UID lacks its minimum, and is complete or was complete less
// than grace ago. If not, the gang's reservation ends, because members above the minimum get none.
func (r Reader) Waits(key dialect.Key, uid types.UID, grace time.Duration) bool {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	return g != nil && g.isOf(uid) && g.lacksMinimum() &&
		(g.complete() || t.config.Now().Sub(g.incompleteSince) < grace)
}

// CountForeign returns, by API group, how many PodGroups have a status that this scheduler does not write because
// another program does. A scheduler that does not lead counts none.
func (r Reader) CountForeign() map[string]int {
	t := r.Of
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := make(map[string]int)
	now := t.config.Now()
	for _, g := range t.gangs {
		if !t.synced || g.group == nil || g.key.Dialect == dialect.Own {
			continue
		}
		if g.phaseWriter.until.After(now) || g.group.LeavesPhase() {
			counts[g.key.Dialect.Kind().Group]++
		}
	}
	return counts
}

// ToCome returns what the group with this UID asks to reserve (spec.provision) for members that have no place yet. It
// returns false if the group is gone, or if no member runs.
func (r Reader) ToCome(key dialect.Key, uid types.UID) (provision.Amounts, bool) {
	t := r.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) || !runs(g) {
		return nil, false
	}
	return toCome(g), true
}
