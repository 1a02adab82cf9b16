// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"github.com/lockstep-k8s/lockstep/podgroup"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// A gang that was placed as a whole may lose members: the Pods fail, or are deleted, and are replaced. While the gang
// is short of former members, the others hold room and do no work. recoveryTimeoutSeconds bounds that.
//
// The time runs only while the cluster has no room for a replacement: the Pod exists and is unplaced, or the creation
// is refused. The time does not run while the controller itself keeps the gang waiting: for the delay of a retry, the
// removal of the old Pod, or a write. Tasks of a scale-up that were never there are not lost, so a gang that waits
// only for such tasks goes on.

// memberCount counts members of a gang, or of one of its roles, that are in the spec and have not completed.
type memberCount struct {
	// up members are placed, run, or have succeeded.
	up int32
	// lost members were there, and are not up.
	lost int32
	// waiting are those lost members for which the cluster has no room.
	waiting int32
	// coming are lost members whose Pods are being created. It is not known yet whether there is room for them.
	coming int32
}

// shortOf reports whether members that were lost are missing from a minimum.
func (c memberCount) shortOf(minimum int32) bool {
	return c.lost > 0 && c.up < min(minimum, c.up+c.lost)
}

// plus adds two counts.
func (c memberCount) plus(other memberCount) memberCount {
	return memberCount{
		up: c.up + other.up, lost: c.lost + other.lost,
		waiting: c.waiting + other.waiting, coming: c.coming + other.coming,
	}
}

// followRecovery records when the gang began to wait for lost members. The time stays in the status while any lost
// member waits for room or is being created.
func (d *decision) followRecovery() (goOn bool) {
	group := d.next.AttemptStatus.PodGroup
	if !d.isGang() || group == nil || !group.EverScheduled || d.completing() {
		return true
	}
	waiting, coming := d.awaitedMembers()
	d.waitsForMembers = waiting
	since := group.UnknownSince
	switch {
	case waiting && since == nil:
		since = d.timeNow()
	case !waiting && !coming:
		since = nil
	}
	if since != group.UnknownSince {
		changed := *group
		changed.UnknownSince = since
		d.next.AttemptStatus.PodGroup = &changed
	}
	return true
}

// awaitedMembers reports whether the gang waits for lost members. `waiting`: the cluster has no room for some of them.
// `coming`: some of them are being created.
func (d *decision) awaitedMembers() (waiting, coming bool) {
	spec, needed := podgroup.DesiredSpec(&d.Framework.Spec, d.activeTasks())
	if !needed {
		return false, false
	}
	blocked := map[string]bool{}
	for _, block := range d.Blocked {
		blocked[block.Group] = true
	}
	look := func(count memberCount, minimum int32) {
		if count.shortOf(minimum) {
			waiting = waiting || count.waiting > 0
			coming = coming || count.coming > 0
		}
	}
	var all memberCount
	roles := map[string]memberCount{}
	d.eachTask(func(t cursor) {
		count := t.countMember(blocked[t.role.Name] || blocked[""])
		all = all.plus(count)
		roles[t.role.Name] = roles[t.role.Name].plus(count)
	})
	look(all, spec.MinMember)
	for role, minimum := range spec.MinRoleMember {
		look(roles[role], minimum)
	}
	return waiting, coming
}

// countMember counts one task. `blocked` means that the API server refuses the task's Pod at present.
func (t cursor) countMember(blocked bool) memberCount {
	task := t.status()
	switch {
	case !t.wanted() || task.State == frameworkv1.TaskCompleted:
		return memberCount{}
	case t.isUp():
		return memberCount{up: 1}
	case task.RunTime == nil && (task.RetryPolicyStatus.TotalRetriedCount == 0 || t.wasAdded()):
		return memberCount{} // It was never there, as far as is known.
	}
	count := memberCount{lost: 1}
	switch task.State {
	case frameworkv1.TaskAttemptCreationPending:
		persisted := t.persisted()
		switch {
		case persisted == nil || persisted.State != task.State:
			// The controller has yet to write that.
		case blocked:
			count.waiting = 1
		default:
			count.coming = 1
		}
	case frameworkv1.TaskAttemptCreationRequested:
		count.coming = 1
	case frameworkv1.TaskAttemptPreparing:
		if t.pod() == nil {
			count.coming = 1 // It is out of sight, and may have a place by now.
		} else {
			count.waiting = 1
		}
	}
	return count
}

// wasAdded reports whether a rescale has added the task to the gang: its attempt is newer than the PodGroup. For a task
// that has not run, nothing else shows whether its Pod ever had a node.
func (t cursor) wasAdded() bool {
	begun := t.d.next.AttemptStatus.PodGroup.CreationTime
	return begun != nil && t.status().StartTime.After(begun.Time)
}

// isUp reports whether the task's Pod is placed, runs, or has succeeded.
func (t cursor) isUp() bool {
	node := t.status().AttemptStatus.PodNodeName
	return t.isActive() || t.status().State == frameworkv1.TaskAttemptPreparing && node != nil && *node != ""
}
