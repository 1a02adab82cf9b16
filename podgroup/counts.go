// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import corev1 "k8s.io/api/core/v1"

// Tally is a number of members, in all and of each role. Members without a role
// are in Total only. The zero Tally is empty and ready for use.
type Tally struct {
	Total int32
	Roles map[string]int32
}

// Add counts n more members of a role, which may be empty.
func (t *Tally) Add(role string, n int32) {
	t.Total += n
	if role == "" {
		return
	}
	if t.Roles == nil {
		t.Roles = map[string]int32{}
	}
	t.Roles[role] += n
}

// Plus returns the sum of two tallies. It changes neither.
func (t Tally) Plus(other Tally) Tally {
	sum := Tally{Total: t.Total + other.Total}
	if len(t.Roles)+len(other.Roles) == 0 {
		return sum
	}
	sum.Roles = make(map[string]int32, max(len(t.Roles), len(other.Roles)))
	for _, roles := range []map[string]int32{t.Roles, other.Roles} {
		for role, n := range roles {
			sum.Roles[role] += n
		}
	}
	return sum
}

// Counts counts the members of a group by their state. Every member is counted in Members, and in at most one of
// Scheduled, Succeeded and Failed. Running members are also counted in Scheduled.
type Counts struct {
	// Members exist, in whatever state.
	Members Tally
	// Scheduled members are placed on a node, have not ended and are not being
	// deleted.
	Scheduled Tally
	// Running members are Scheduled and run.
	Running Tally
	// Succeeded members ended well, and have not been removed yet.
	Succeeded Tally
	// Failed members ended badly, and have not been removed yet.
	Failed Tally
}

// Count returns where the given Pods, the members of one group, are.
func Count(pods []*corev1.Pod) Counts {
	var c Counts
	for _, pod := range pods {
		c.add(pod)
	}
	return c
}

func (c *Counts) add(pod *corev1.Pod) {
	role := RoleOf(pod)
	c.Members.Add(role, 1)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		c.Succeeded.Add(role, 1)
	case pod.Status.Phase == corev1.PodFailed:
		c.Failed.Add(role, 1)
	case pod.DeletionTimestamp != nil, pod.Spec.NodeName == "":
		// The Pod has no place, or gives it up.
	case pod.Status.Phase == corev1.PodRunning:
		c.Scheduled.Add(role, 1)
		c.Running.Add(role, 1)
	default:
		c.Scheduled.Add(role, 1)
	}
}

// Active returns the members that run or have done so with success.
func (c Counts) Active() Tally {
	return c.Running.Plus(c.Succeeded)
}

// Placed returns the members that are active or become so without being scheduled
// again.
func (c Counts) Placed() Tally {
	return c.Scheduled.Plus(c.Succeeded)
}

// Ended reports whether there are members, and all have succeeded or failed.
func (c Counts) Ended() bool {
	return c.Members.Total > 0 && c.Succeeded.Total+c.Failed.Total == c.Members.Total
}
