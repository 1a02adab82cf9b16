// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
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

// gang is a PodGroup with its members. It is not safe for concurrent use: the
// lock of Gangs guards it.
//
// Invariant: waiting, placed and bound count the members by their state, priorities
// those that wait or run, ended those that have succeeded, and strangers the Pods that are no members.
type gang struct {
	key   dialect.Key
	rules *Rules
	// group is nil while the PodGroup is not seen, and groupless is since when.
	group     *dialect.Group
	groupless time.Time
	// groupSeen is when this PodGroup was first seen.
	groupSeen time.Time
	// seen is when the group, or a Pod that names it, was first seen.
	seen time.Time
	// unseen says that there may be a PodGroup that can't be seen, and awaited until when another one may come for
	// one that was deleted.
	unseen  bool
	awaited time.Time
	// members are the Pods that name the group, strangers among them.
	members map[types.UID]*member

	waiting, placed, bound podgroup.Tally
	// priorities counts the members of each priority that wait or are placed, and have not ended: quotas of
	// a priority don't count those that have.
	priorities map[int32]int
	// ended counts the members of each priority that have succeeded.
	ended     map[int32]int
	strangers int
	// minima counts the members by the minimum that they say, and oldest is when the first one
	// was created; see implied.go.
	minima map[int32]int
	oldest time.Time
	// ranked is the gang's priority as the others know it, nil if it has none.
	ranked *int32
	// failedMembers and deletedMembers were placed once; they tell a group that
	// lost members from one that never had them.
	failedMembers, deletedMembers int

	bindings bindings
	// starts says that members were placed while none was bound, and that the minimum was not
	// bound since.
	starts bool
	// preempted says that the gang was preempted as a whole, and its minimum was not bound since.
	preempted bool
	// lost are members that have gone as they were preempted, while another scheduler led, and since the minimum was
	// bound or another member got a place.
	lost podgroup.Tally
	// kept is for what room is kept for the gang, as in news.Gang.
	kept string
	// nominees are the nodes for which members are to be nominated.
	nominees map[types.UID]string
	// incompleteSince is since when the gang is not complete any more; zero if it never was,
	// or is.
	incompleteSince time.Time
	record          news.Record // what was written of it
	phaseWriter     phaseWriter // and who else has
	// announced is what the gang may count on of what its group announces, nil while none of its members runs. Takes is what
	// the members take that have a place, nil while nobody has asked for it.
	announced, takes provision.Amounts
	staging          staging
}

func newGang(key dialect.Key, rules *Rules, now time.Time) *gang {
	return &gang{key: key, rules: rules, groupless: now, seen: now, members: make(map[types.UID]*member), priorities: make(map[int32]int), ended: make(map[int32]int), minima: make(map[int32]int)}
}

// isLoose says whether the members are ordinary Pods, which are placed by others.
func (g *gang) isLoose() bool {
	return g.group != nil && g.group.Spec.Loose
}

// complete says whether the gang's minimum could hold if all that waits were
// placed, something waits, and nothing is in the way.
func (g *gang) complete() bool {
	return g.group != nil && !g.group.IsHalted() && g.waiting.Total > 0 && !g.staging.gathers &&
		g.group.HeldBy(g.placed, g.waiting)
}

// lacksMinimum says whether fewer are placed than the minimum.
func (g *gang) lacksMinimum() bool {
	return g.group != nil && !g.group.HeldBy(g.placed)
}

// existing counts the members that are placed and still exist. After a watch was broken, members may be gone of which the gang learns
// in a moment only (ADR 71).
func (g *gang) existing(current func(*corev1.Pod) *corev1.Pod) podgroup.Tally {
	placed := g.placed.Plus(podgroup.Tally{})
	for _, m := range g.members {
		if g.state(m) == memberPlaced && current(m.pod) == nil {
			placed.Add(g.key.RoleOf(m.pod), -1)
		}
	}
	return placed
}

// scheduled says whether the minimum is bound.
func (g *gang) scheduled() bool {
	return g.group != nil && g.group.HeldBy(g.bound)
}

// isOf says whether the gang is that of a PodGroup, and not of another one of its name.
func (g *gang) isOf(group types.UID) bool {
	return g.group != nil && g.group.UID == group
}

// state is what a member of the gang counts as.
func (g *gang) state(m *member) memberState {
	s := m.state(g.rules.Serves)
	if s == memberWaiting && g.isLoose() {
		return memberOut
	}
	return s
}

// count adds or, with sign -1, takes away a member, or a stranger.
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
		g.placed.Add(g.key.RoleOf(m.pod), sign)
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

// countPriority adds or, with sign -1, takes away a member's priority.
func countPriority(priorities map[int32]int, pod *corev1.Pod, sign int) {
	priority := corev1helpers.PodPriority(pod)
	if priorities[priority] += sign; priorities[priority] <= 0 {
		delete(priorities, priority)
	}
}

// highest is the highest of some priorities, 0 if there is none.
func highest(priorities map[int32]int) int32 {
	if len(priorities) == 0 {
		return 0
	}
	return slices.Max(slices.Collect(maps.Keys(priorities)))
}

// rank is the gang's place in the queue: by the highest priority among the members that wait, or run. Between two stages, when
// nobody does, what is kept for the next one is worth what those were that have ended. The gang's PriorityClass counts as
// far as its members have that priority; see package news.
func (g *gang) rank() queue.Rank {
	if isBetweenStages(g) {
		return g.worth()
	}
	return g.rankWith(highest(g.priorities))
}

// worth is the rank of the gang for those who would take its members. When all have ended it is as before: a cycle that
// has begun sees them run.
func (g *gang) worth() queue.Rank {
	if len(g.priorities) == 0 {
		return g.rankWith(highest(g.ended))
	}
	return g.rankWith(highest(g.priorities))
}

// rankWith is the rank of the gang if a priority is the highest one of its members.
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

// priorityOf is the priority that a group asks for, false if it asks for none.
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

// begun forgets what a gang that starts, or was broken, remembers until its minimum is bound.
func (g *gang) begun() {
	if g.scheduled() {
		g.starts, g.preempted, g.lost = false, false, podgroup.Tally{}
	}
}

// fell says whether the gang's priority is lower than it was when this was asked the last time.
func (g *gang) fell() bool {
	before := g.ranked
	if len(g.priorities) == 0 {
		g.ranked = nil
		return false // nobody is left to give way
	}
	now := g.rank().Priority
	g.ranked = &now
	return before != nil && now < *before
}

// waitsSince is since when the gang has found no place: since now or, if a scheduler before
// this one has said so, since that. What this one has said since says no more than it knows itself: a condition has
// its status since the gang lacked members, perhaps. Nor has any member waited since before it was created.
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
