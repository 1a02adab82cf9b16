// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// gang is a PodGroup with its members. It is not safe for concurrent use: the lock of Gangs guards it. A stranger is a
// Pod that names the group, but is not a member; see stranger.go.
//
// Invariant: waiting, placed and bound count the members by state; priorities counts the members that wait or run;
// ended counts the members that have succeeded; strangers counts the strangers.
type gang struct {
	key   dialect.Key
	rules *Rules
	// group is nil while the PodGroup was not seen; groupless is since when.
	group     *dialect.Group
	groupless time.Time
	// groupSeen is when this PodGroup was first seen.
	groupSeen time.Time
	// seen is when the group, or a Pod that names the group, was first seen.
	seen time.Time
	// unseen reports that the gang may have a PodGroup that can't be read. awaited is the time until which a new
	// PodGroup may replace a deleted one.
	unseen  bool
	awaited time.Time
	// members are the Pods that name the group, including strangers.
	members map[types.UID]*member

	waiting, placed, bound podgroup.Tally
	// withPlaced is Gangs.withPlaced: the gang is in it while a member is placed.
	withPlaced map[dialect.Key]*gang
	// priorities counts, by priority, the members that wait, or are placed and have not ended.
	priorities map[int32]int
	// ended counts the members of each priority that have succeeded.
	ended     map[int32]int
	strangers int
	// minima counts the members by the minimum that they state. oldest is when the oldest member was created; see
	// implied.go.
	minima map[int32]int
	oldest time.Time
	// ranked is the gang's priority as other gangs know it, nil if none.
	ranked *int32
	// failedMembers counts the bound members that have failed. deletedMembers counts the bound members that were
	// deleted before they failed.
	failedMembers, deletedMembers int

	bindings bindings
	// starts reports that members were placed while no member was bound, and that the minimum has not been bound since.
	starts bool
	// preempted reports that the gang was preempted as a whole, and its minimum has not been bound since.
	preempted bool
	// lost counts members that are gone because of preemption under another leader. It is set to 0 when the minimum is
	// bound, or when another member gets a place.
	lost podgroup.Tally
	// kept is why room is reserved for the gang, as in news.Gang.
	kept string
	// nominees are the nodes for which members are to be nominated.
	nominees map[types.UID]string
	// incompleteSince is the time from which on the gang has been incomplete. It is zero if the gang is complete, or
	// never was.
	incompleteSince time.Time
	record          news.Record // what was written about it
	phaseWriter     phaseWriter // and by which other program
	// announced is how much spec.provision asks for, but no more than it asked for at any time since the gang's start;
	// nil while no member runs. takes is what the placed members take, nil while that is unknown.
	announced, takes provision.Amounts
	staging          staging
}

func newGang(key dialect.Key, rules *Rules, withPlaced map[dialect.Key]*gang, now time.Time) *gang {
	return &gang{key: key, rules: rules, groupless: now, seen: now, withPlaced: withPlaced, members: make(map[types.UID]*member), priorities: make(map[int32]int), ended: make(map[int32]int), minima: make(map[int32]int)}
}

// isLoose reports whether the members are ordinary Pods, which kube-scheduler places.
func (g *gang) isLoose() bool {
	return g.group != nil && g.group.Spec.Loose
}

// complete reports whether at least one member waits, the gang's minimum could hold with all waiting members placed,
// and neither the group nor an open stage prevents a placement.
func (g *gang) complete() bool {
	return g.group != nil && !g.group.IsHalted() && g.waiting.Total > 0 && !g.staging.gathers &&
		g.group.HeldBy(g.placed, g.waiting)
}

// lacksMinimum reports whether fewer members are placed than the minimum.
func (g *gang) lacksMinimum() bool {
	return g.group != nil && !g.group.HeldBy(g.placed)
}

// existing counts the placed members that still exist. After a broken watch, members may be gone before the gang's own
// counts show it (ADR 71).
func (g *gang) existing(current func(*corev1.Pod) *corev1.Pod) podgroup.Tally {
	placed := g.placed.Plus(podgroup.Tally{})
	for _, m := range g.members {
		if g.state(m) == memberPlaced && current(m.pod) == nil {
			placed.Add(g.key.RoleOf(m.pod), -1)
		}
	}
	return placed
}

// scheduled reports whether the minimum is bound.
func (g *gang) scheduled() bool {
	return g.group != nil && g.group.HeldBy(g.bound)
}

// isOf reports whether the gang's present PodGroup has this UID. Another PodGroup may have taken the name.
func (g *gang) isOf(group types.UID) bool {
	return g.group != nil && g.group.UID == group
}

// state returns what a member counts as.
func (g *gang) state(m *member) memberState {
	s := m.state(g.rules.Serves)
	if s == memberWaiting && g.isLoose() {
		return memberOut
	}
	return s
}

// count adds a member or a stranger to the gang's counts, or subtracts it if sign is -1.
func (g *gang) count(m *member, sign int32) {
	if m.isStranger() {
		g.strangers += int(sign)
		return
	}
	s := g.state(m)
	switch {
	case s == memberOut:
	case m.pod.Status.Phase == corev1.PodSucceeded:
		countPriority(g.ended, m.pod, int(sign))
	default:
		countPriority(g.priorities, m.pod, int(sign))
	}
	switch s {
	case memberWaiting:
		g.waiting.Add(g.key.RoleOf(m.pod), sign)
	case memberPlaced:
		if g.placed.Add(g.key.RoleOf(m.pod), sign); g.placed.Total > 0 {
			g.withPlaced[g.key] = g
		} else {
			delete(g.withPlaced, g.key)
		}
		if g.takes != nil && sign > 0 {
			g.takes.Add(provision.OfPod(m.pod))
		} else if g.takes != nil {
			g.takes = g.takes.Less(provision.OfPod(m.pod))
		}
	}
	if m.bound() {
		g.bound.Add(g.key.RoleOf(m.pod), sign)
	}
}

// countPriority adds a member's priority, or subtracts it if sign is -1.
func countPriority(priorities map[int32]int, pod *corev1.Pod, sign int) {
	priority := corev1helpers.PodPriority(pod)
	if priorities[priority] += sign; priorities[priority] <= 0 {
		delete(priorities, priority)
	}
}

// highest returns the highest of some priorities, 0 if there is none.
func highest(priorities map[int32]int) int32 {
	if len(priorities) == 0 {
		return 0
	}
	highest := int32(math.MinInt32)
	for priority := range priorities {
		highest = max(highest, priority)
	}
	return highest
}

// rank returns the gang's place in the queue, which follows from the highest priority among the members that wait or
// run. Between two stages there are no such members. Then the priority of the ended members counts, so that the
// reservation for the next stage keeps its rank. The group's PriorityClass can lower the priority, but not raise it;
// see package news.
func (g *gang) rank() queue.Rank {
	if isBetweenStages(g) {
		return g.worth()
	}
	return g.rankWith(highest(g.priorities))
}

// worth returns the rank that others must exceed to preempt members of the gang. If all members have ended, the ended
// members count, because a cycle that has begun still sees them as running.
func (g *gang) worth() queue.Rank {
	if len(g.priorities) == 0 {
		return g.rankWith(highest(g.ended))
	}
	return g.rankWith(highest(g.priorities))
}

// rankWith returns the rank of the gang if the highest priority of its members is the given one.
func (g *gang) rankWith(highest int32) queue.Rank {
	r := queue.Rank{Key: g.key, Priority: highest}
	if g.group == nil {
		return r
	}
	r.Created = g.group.Created
	if priority, ok := g.rules.priorityOf(g.group); ok {
		r.Priority = min(r.Priority, priority)
	}
	return r
}

// priorityOf returns the priority that a group asks for, false for none.
func (r *Rules) priorityOf(group *dialect.Group) (int32, bool) {
	switch {
	case group.Spec.Priority != nil:
		return *group.Spec.Priority, true
	case group.Spec.PriorityClassName != "":
		return r.ClassValue(group.Spec.PriorityClassName)
	default:
		return 0, false
	}
}

// begun clears the fields starts, preempted and lost once the minimum is bound. They are kept until then.
func (g *gang) begun() {
	if g.scheduled() {
		g.starts, g.preempted, g.lost = false, false, podgroup.Tally{}
	}
}

// noteRank records the gang's priority, and reports whether it is lower than at the last call.
func (g *gang) noteRank() bool {
	before := g.ranked
	if len(g.priorities) == 0 {
		g.ranked = nil
		return false // no member is left to give way
	}
	now := g.rank().Priority
	g.ranked = &now
	return before != nil && now < *before
}

// waitsSince returns the time from which on the gang has found no place. It is now, unless a condition from an earlier
// scheduler names an earlier time. This scheduler's own condition does not count, because its time may be from when the
// gang lacked members. The result is not before the creation of the last waiting member.
func (g *gang) waitsSince(now time.Time) time.Time {
	if g.record.Conditions != nil {
		return now
	}
	since := news.NoRoomSince(g.group.Conditions)
	if since.IsZero() {
		return now
	}
	for _, m := range g.members {
		if g.state(m) == memberWaiting {
			since = times.Later(since, m.pod.CreationTimestamp.Time)
		}
	}
	return times.Sooner(since, now)
}
