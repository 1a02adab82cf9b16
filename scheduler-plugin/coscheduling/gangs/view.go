// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// View is a gang as it is when its cycle begins. At least one member waits. Nobody changes it, whatever becomes of the gang.
type View struct {
	Key   dialect.Key
	Rank  queue.Rank
	Group *dialect.Group
	// Waiting are the members to place, in their order. ClassKeys are theirs; see Config.ClassKey.
	Waiting   []*corev1.Pod
	ClassKeys []string
	// Placed counts the members that are placed, and Nodes is where those are
	// that have not ended.
	Placed podgroup.Tally
	Nodes  []string
	// Since is when the gang was first planned since its minimum was last bound, and
	// Failures are the cycles in a row that have found no place.
	Since    time.Time
	Failures int
	// PreemptsFrom is when the gang may preempt others again, as the bindings of its last placements were refused for
	// good; zero if none were.
	PreemptsFrom time.Time
	// Starts says that none of the members runs. ToCome is what the group announces without what the members take that have a
	// place; of a gang that has started, no more than it announced then.
	Starts bool
	ToCome provision.Amounts
}

// Broken says whether members are placed, but too few. A gang that comes in stages lacks members because
// more have come, so it has no rights that a gang has which has lost some.
func (v *View) Broken() bool {
	return v.Placed.Total > 0 && !v.Group.HeldBy(v.Placed) && !v.Group.Spec.Staged
}

// Standing is a gang that has members placed.
type Standing struct {
	Group  *dialect.Group
	Rank   queue.Rank
	Placed podgroup.Tally
	// GoesWhole says that the rest goes with a member that the gang needs.
	GoesWhole bool
	// Waits says that the gang found no place for other members, and Since since when.
	Waits bool
	Since time.Time
}

// viewOf is a gang as a cycle sees it that begins now.
func viewOf(g *gang) View {
	v := View{Key: g.key, Rank: g.rank(), Group: g.group, Placed: g.placed.Plus(podgroup.Tally{}), Starts: isStarting(g), ToCome: toCome(g),
		PreemptsFrom: g.bindings.pauseEnds}
	for _, m := range g.members {
		switch g.state(m) {
		case memberWaiting:
			v.Waiting = append(v.Waiting, m.pod)
		case memberPlaced:
			if m.pod.Status.Phase != corev1.PodSucceeded {
				v.Nodes = append(v.Nodes, m.node())
			}
		}
	}
	sortMembers(v.Waiting)
	for _, pod := range v.Waiting {
		v.ClassKeys = append(v.ClassKeys, g.members[pod.UID].class)
	}
	slices.Sort(v.Nodes)
	return v
}
