// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Some tools count members that only come after others have run, such as an initializer and the nodes that it prepares.
// Such a gang would wait for ever. If its group or a Pod says that the gang is staged, the minimum is lowered to the
// existing members once no member has come for a moment.

// stagedQuiet is how long after the last new member the existing members count as a complete stage.
const stagedQuiet = 2 * time.Second

// staging is the state of a gang in stages.
type staging struct {
	// asked is the group as in its object.
	asked *dialect.Group
	// byPod reports that a Pod has said that the gang is staged.
	byPod bool
	// until is until when more members of the stage may come.
	until time.Time
	// gathers reports that until has not passed yet.
	gathers bool
	// most is the highest number of placed members since the gang last had no placed member. bound is the same for
	// bound members.
	most, bound podgroup.Tally
}

// isStaged reports whether the gang starts in stages: its minimum includes members that are only created after others
// have run.
func isStaged(g *gang) bool {
	return g.staging.asked != nil && (g.staging.asked.Spec.Staged || g.staging.byPod)
}

// joinStage handles a new member: it keeps the stage open for stagedQuiet after the member came. A member that existed
// before this scheduler's start came when it was created.
func joinStage(g *gang, m *member, now time.Time) {
	s := &g.staging
	s.byPod = s.byPod || dialect.IsStaged(m.pod)
	came := now
	if created := m.pod.CreationTimestamp.Time; !created.IsZero() && created.Before(now) {
		came = created
	}
	s.until = times.Later(s.until, came.Add(stagedQuiet))
}

// isBetweenStages reports whether another stage is to come: members are placed, but fewer than the minimum in the
// PodGroup. All placed members may have succeeded.
func isBetweenStages(g *gang) bool {
	return isStaged(g) && g.placed.Total > 0 && !g.staging.asked.HeldBy(g.placed)
}

// restage computes the minimum of a staged gang. While members are coming, it is the minimum in the PodGroup; after
// that it is at most the number of existing members. Members that were placed and are gone without having succeeded are
// included in that number, because the gang has lost them.
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

// countStage records the highest number of placed members in the stage. Members that are ending do not count. Otherwise
// preempted members would count twice once their replacements are there.
func countStage(g *gang) {
	s := &g.staging
	if g.placed.Total == 0 {
		s.most, s.bound = podgroup.Tally{}, podgroup.Tally{}
		return
	}
	s.most, s.bound = larger(s.most, g.placed), larger(s.bound, g.bound)
}

// uncountStage is called when a member of a gang is gone that was placed, but never bound. The minimum of a staged gang
// (see isStaged) includes members that were placed and are lost. This member no longer counts, because no work is lost
// with it. In a preempted gang it still counts, so that the gang lacks its minimum and its other members are evicted.
func uncountStage(g *gang) {
	if isStaged(g) && !g.preempted {
		g.staging.most = larger(g.staging.bound, g.placed)
	}
}

// recallStage counts members that were preempted before this scheduler began and were not replaced. The earlier
// scheduler may not have evicted the rest of the gang.
func recallStage(g *gang) {
	if isStaged(g) {
		before := g.placed.Plus(g.preemptedSince(newest(g)))
		g.staging.most, g.staging.bound = before, before
	}
}

// newest returns when the last of the placed or waiting members was created.
func newest(g *gang) time.Time {
	var last time.Time
	for _, m := range g.members {
		if g.state(m) != memberOut {
			last = times.Later(last, m.pod.CreationTimestamp.Time)
		}
	}
	return last
}

// lastHeld returns the gang's group with the minimum that the gang had reached. For a gang in stages, this minimum does
// not include members that wait for the next stage, because the gang goes on without them.
func lastHeld(g *gang) *dialect.Group {
	if !isStaged(g) || g.group == nil {
		return g.group
	}
	group := *g.group
	group.Spec.Minimum = g.staging.asked.Spec.Minimum.AtMost(g.staging.most)
	return &group
}

// larger returns the larger of each count.
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
