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

// View is a gang at the beginning of its cycle, with at least one waiting member. Later changes of the gang do not
// change the View.
type View struct {
	Key   dialect.Key
	Rank  queue.Rank
	Group *dialect.Group
	// Waiting are the members to place, in order. ClassKeys are their class keys; see Config.ClassKey.
	Waiting   []*corev1.Pod
	ClassKeys []string
	// Placed counts the placed members. Nodes are the nodes of those that have not ended.
	Placed podgroup.Tally
	Nodes  []string
	// Since is when the gang began to wait. Failures is the number of cycles in a row without a place.
	Since    time.Time
	Failures int
	// IsFirst reports that the gang has the right to a reservation: no gang ahead of it may have one.
	IsFirst bool
	// PausesUntil is when the gang may preempt Pods and have a reservation again after the API server refused its bindings. It is
	// zero if there is no such pause.
	PausesUntil time.Time
	// Starts reports that no member runs. ToCome is the resources that the PodGroup requests for members still to come:
	// spec.provision minus what placed members take. Once the gang has started, later increases of spec.provision do
	// not count.
	Starts bool
	ToCome provision.Amounts
}

// Broken reports whether members are placed, but fewer than the minimum. A gang in stages is not broken: it lacks
// members only because more Pods have come.
func (v *View) Broken() bool {
	return v.Placed.Total > 0 && !v.Group.HeldBy(v.Placed) && !v.Group.Spec.Staged
}

// Standing is a gang with placed members.
type Standing struct {
	Group  *dialect.Group
	Rank   queue.Rank
	Placed podgroup.Tally
	// GoesWhole reports that all members go if a needed member goes.
	GoesWhole bool
	// WaitsSince is when the gang's waiting members began to wait, if the gang has lost the minimum that it had and found
	// no place for these members; otherwise zero.
	WaitsSince time.Time
}

// viewOf returns the View for a cycle that begins now.
func viewOf(g *gang) View {
	v := View{Key: g.key, Rank: g.rank(), Group: g.group, Placed: g.placed.Plus(podgroup.Tally{}), Starts: isStarting(g), ToCome: toCome(g),
		PausesUntil: g.bindings.pauseEnds}
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
