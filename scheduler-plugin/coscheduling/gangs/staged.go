// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Some tools count members that only come after others have run: an initializer and the nodes that
// it prepares, say. Such a gang would wait for ever. If its group or a Pod says that it is staged, no more
// members are placed together than there are, once none has come for a moment.

// stagedQuiet is how long no member may have come before those that there are count as a stage.
const stagedQuiet = 2 * time.Second

// staging is what a gang has of that.
type staging struct {
	// asked is the group as its object has it.
	asked *dialect.Group
	// byPod says that a Pod has said that the gang is staged.
	byPod bool
	// until is until when others may come that belong to the stage.
	until time.Time
	// gathers says that this is still to come.
	gathers bool
	// most is how many members were placed at once, since none was, and bound how many of them were bound at once.
	most, bound podgroup.Tally
}

// isStaged says whether the gang's minimum counts members which only come after others have run.
func isStaged(g *gang) bool {
	return g.staging.asked != nil && (g.staging.asked.Spec.Staged || g.staging.byPod)
}

// joinStage has a stage be open for a while, as a member has come. What was there before this scheduler
// came no later than it was created.
func joinStage(g *gang, m *member, now time.Time) {
	s := &g.staging
	s.byPod = s.byPod || dialect.IsStaged(m.pod)
	came := now
	if created := m.pod.CreationTimestamp.Time; !created.IsZero() && created.Before(now) {
		came = created
	}
	s.until = times.Later(s.until, came.Add(stagedQuiet))
}

// isBetweenStages says whether members are placed that are fewer than the minimum as the group's object has it, so
// that another stage is to come. It may be that all of them have succeeded.
func isBetweenStages(g *gang) bool {
	return isStaged(g) && g.placed.Total > 0 && !g.staging.asked.HeldBy(g.placed)
}

// restage finds out what the minimum of a gang is that is staged: as it was while members are coming, and
// then no more than there are. Those that were placed and are not any more count on, if they have not
// succeeded: the gang has lost them.
func restage(g *gang, now time.Time) {
	s := &g.staging
	s.gathers = isStaged(g) && now.Before(s.until)
	if !isStaged(g) {
		return
	}
	countStage(g)
	if s.gathers {
		return
	}
	group := *s.asked
	group.Spec.Minimum, group.Spec.Staged = s.asked.Spec.Minimum.AtMost(larger(s.most, g.placed.Plus(g.waiting))), true
	g.group = &group
}

// countStage notes how many members are placed. Those that are ending do not count, or a stage would count
// twice while others have come for those that were preempted.
func countStage(g *gang) {
	s := &g.staging
	if g.placed.Total == 0 {
		s.most, s.bound = podgroup.Tally{}, podgroup.Tally{}
		return
	}
	s.most, s.bound = larger(s.most, g.placed), larger(s.bound, g.bound)
}

// uncountStage has the stage be without a member that was placed and never bound: nothing is lost with it. If
// the gang was preempted, the rest still goes because of it.
func uncountStage(g *gang) {
	if isStaged(g) && !g.preempted {
		g.staging.most = larger(g.staging.bound, g.placed)
	}
}

// recallStage has members count that preemption has taken before this scheduler began, unless others have
// come for them: it may be that the scheduler before has not dissolved the rest.
func recallStage(g *gang) {
	if isStaged(g) {
		before := g.placed.Plus(g.preemptedSince(newest(g)))
		g.staging.most, g.staging.bound = before, before
	}
}

// newest is when the last one was created of the members that are placed or wait.
func newest(g *gang) time.Time {
	var last time.Time
	for _, m := range g.members {
		if g.state(m) != memberOut {
			last = times.Later(last, m.pod.CreationTimestamp.Time)
		}
	}
	return last
}

// lastHeld is the gang's group with the minimum that it has had last. For a gang in stages that is without those
// that wait for the next stage: it goes on without them.
func lastHeld(g *gang) *dialect.Group {
	if !isStaged(g) || g.group == nil {
		return g.group
	}
	group := *g.group
	group.Spec.Minimum = g.staging.asked.Spec.Minimum.AtMost(g.staging.most)
	return &group
}

// larger is of each count the larger one.
func larger(a, b podgroup.Tally) podgroup.Tally {
	most := a.Plus(podgroup.Tally{})
	most.Total = max(a.Total, b.Total)
	for role, n := range b.Roles {
		if n > most.Roles[role] {
			if most.Roles == nil {
				most.Roles = make(map[string]int32, len(b.Roles))
			}
			most.Roles[role] = n
		}
	}
	return most
}
