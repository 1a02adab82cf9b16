// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// rank is the gang's place in line. Its PriorityClass counts as far as its members have
// that priority; see capped.go. The caller holds the lock.
func (t *tracker) rank(g *gang) line.Rank {
	r := line.Rank{Key: g.key, Priority: g.highestPriority()}
	if g.group == nil {
		return r
	}
	r.Created = g.group.CreationTimestamp.Time
	if class := g.group.Spec.PriorityClassName; class != "" {
		if priority, ok := t.classPriority(class); ok {
			r.Priority = min(r.Priority, priority)
		}
	}
	return r
}

// highestPriority is the highest priority among the members that wait or are placed.
func (g *gang) highestPriority() int32 {
	first, highest := true, int32(0)
	for priority := range g.priorities {
		if first || priority > highest {
			first, highest = false, priority
		}
	}
	return highest
}

// countPriority adds or, with sign -1, takes away a member's priority.
func (g *gang) countPriority(pod *corev1.Pod, sign int) {
	priority := corev1helpers.PodPriority(pod)
	if g.priorities[priority] += sign; g.priorities[priority] <= 0 {
		delete(g.priorities, priority)
	}
}

// markAwake marks a gang as one that something may help. The caller holds the lock.
func (t *tracker) markAwake(g *gang) {
	t.awake[g.key] = g
}

// isAwake says whether something happened that may help the gang since its last
// cycle began.
func (t *tracker) isAwake(g *gang) bool {
	return t.awake[g.key] == g
}

// firstInLine is the gang to plan in a turn of g: one that was woken too and is
// ahead of it, or g itself. A gang ahead is tried even if its back-off is not over:
// if there is room for g now, it is to have its chance of it. That is once in an
// initial back-off at most, however many events wake it, so that a gang that never
// fits does not take the turns of those behind it. The caller holds the lock.
func (t *tracker) firstInLine(g *gang) *gang {
	first, firstRank, now := g, t.rank(g), t.now()
	for _, other := range t.awake {
		if other == g || !other.complete() || !other.mayBeTriedAhead(now) || t.inDebt(other).After(now) {
			continue
		}
		if r := t.rank(other); r.Compare(firstRank) < 0 {
			first, firstRank = other, r
		}
	}
	return first
}

// mayBeTriedAhead says whether the gang may be planned in a turn of another. One that
// could not be bound does not lack room, so it waits for the end of its back-off.
func (g *gang) mayBeTriedAhead(now time.Time) bool {
	if g.bindings.notBefore.After(now) {
		return false
	}
	return !g.attempt.notBefore.After(now) || !g.attempt.notAhead.After(now)
}

// nextAbove is the gang to plan before an ordinary Pod of this priority: the
// first in line of those that were woken and outrank it. Unlike one gang behind
// another, ordinary Pods don't wait for a back-off, as they don't for that of one
// another.
func (t *tracker) nextAbove(priority int32) (gangView, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.synced || len(t.awake) == 0 {
		return gangView{}, false
	}
	var first *gang
	var firstRank line.Rank
	now := t.now()
	for _, g := range t.awake {
		if !g.complete() || t.notBefore(g).After(now) {
			continue
		}
		if r := t.rank(g); r.Priority > priority && (first == nil || r.Compare(firstRank) < 0) {
			first, firstRank = g, r
		}
	}
	if first == nil {
		return gangView{}, false
	}
	return t.view(first), true
}
