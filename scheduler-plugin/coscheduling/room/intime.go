// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// longestUnseen is for how long a reservation in time lasts that its gang does not renew: it renews it in each of its turns.
const longestUnseen = 10 * time.Minute

// Ends are when Pods end by themselves: zero if nobody knows when. One that is not there does not end.
type Ends map[types.UID]time.Time

// progress is what a reservation in time remembers.
type progress struct {
	// left is how many Pods have to end before the gang has its place.
	left int
	// told is the time from which on the gang needs its room as others were told last, who may have the room until then.
	told time.Time
	// begun is when the first reservation of the gang began that this one continues.
	begun time.Time
	// seen is when the gang had its last cycle, and held how much of its members' time was idle in their room until then: seconds, times
	// the members.
	seen time.Time
	held time.Duration
}

// NewInTime returns the reservation of members on their nodes, from the moment on at which all have their room there. Pods end until
// then, and no others than those. It is nil if there is a node on which the room never is.
func NewInTime(gang Gang, members []*framework.PodInfo, ends Ends, nodes Nodes, now time.Time) *Reservation {
	r := New(gang, InTime, members, nil, now.Add(longestUnseen))
	r.From, r.begun, r.seen = now, now, now
	known := true
	var awaited []fwk.PodInfo
	for _, name := range slices.Sorted(maps.Keys(r.byNode)) {
		node, err := nodes.Get(name)
		if err != nil || !isReady(node.Node()) {
			return nil
		}
		pods := inOrder(node, ends)
		lacks := Lacks(r.byNode[name], node)
		needs := 0
		for ; !lacks.IsZero() && needs < len(pods); needs++ {
			lacks = lacks.Less(TakesOf(pods[needs]))
		}
		if !lacks.IsZero() {
			return nil
		}
		if r.left += needs; needs > 0 {
			last := ends[pods[needs-1].GetPod().UID]
			known = known && !last.IsZero()
			if r.From.Before(last) {
				r.From = last
			}
		}
		for i, pod := range pods {
			if i < needs || !ends[pod.GetPod().UID].IsZero() {
				awaited = append(awaited, pod)
			}
		}
	}
	if !known {
		r.From = time.Time{}
	}
	for _, pod := range awaited {
		if at := ends[pod.GetPod().UID]; !known || !at.After(r.From) {
			r.awaits[pod.GetPod().UID] = TakesOf(pod)
		}
	}
	return r
}

// inOrder are the Pods of a node that end, the first one first.
func inOrder(node fwk.NodeInfo, ends Ends) []fwk.PodInfo {
	var pods []fwk.PodInfo
	for _, pod := range node.GetPods() {
		if _, does := ends[pod.GetPod().UID]; does {
			pods = append(pods, pod)
		}
	}
	slices.SortStableFunc(pods, func(a, b fwk.PodInfo) int {
		x, y := ends[a.GetPod().UID], ends[b.GetPod().UID]
		if x.IsZero() || y.IsZero() {
			return y.Compare(x)
		}
		return x.Compare(y)
	})
	return pods
}

// isReady reports whether Pods may be bound to a node.
func isReady(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
}

// Renewed returns the reservation of the gang by what is known of ends now: where it is, unless another place is better by a tenth of
// the time that is left, and a minute at least. Both may be nil: the gang has no place there any more, or there is no other.
func (r *Reservation) Renewed(other *Reservation, ends Ends, nodes Nodes, now time.Time) *Reservation {
	stays := NewInTime(r.Gang, r.Members, ends, nodes, now)
	if stays != nil && r.From.IsZero() {
		// It goes on to wait for the same work, rather than take what a Pod of a service leaves whose next one comes.
		for uid, takes := range r.awaits {
			if at, runs := ends[uid]; runs && at.IsZero() {
				stays.awaits[uid], stays.From = takes, time.Time{}
			}
		}
	}
	next := other
	if stays != nil && (other == nil || other.Takes.Equal(stays.Takes) && !other.isBetterThan(stays, now)) {
		next = stays
	}
	if next != nil {
		next.begun, next.held = r.begun, r.held+r.idle(nodes, now)
		if other != nil {
			next.Gang = other.Gang
		}
	}
	return next
}

// isLaterThan reports whether the gang needs its room so much later than others were told that they are to hear of it: by a tenth of
// the time that was left, and a minute at least. Where work overruns its estimate, the time moves with the clock.
func (r *Reservation) isLaterThan(told time.Time) bool {
	switch {
	case r.From.IsZero():
		return false
	case told.IsZero():
		return true
	default:
		return r.From.Sub(told) >= max(time.Minute, told.Sub(r.seen)/10)
	}
}

// isBetterThan reports whether it is worth it to move to a place.
func (r *Reservation) isBetterThan(old *Reservation, now time.Time) bool {
	switch {
	case r.From.IsZero() && old.From.IsZero():
		return r.left < old.left-old.left/10
	case r.From.IsZero() || old.From.IsZero():
		return old.From.IsZero()
	}
	return r.From.Add(max(time.Minute, old.From.Sub(now)/10)).Before(old.From)
}

// idle is how much of its members' time was idle in their room since the gang was last seen.
func (r *Reservation) idle(nodes Nodes, now time.Time) time.Duration {
	idle := 0
	taken := make(map[string]provision.Amounts)
	for _, m := range r.Members {
		name, takes := m.Pod.Spec.NodeName, TakesOf(m)
		with := takes.Plus(taken[name])
		if node, err := nodes.Get(name); err == nil && Lacks(with, node).IsZero() {
			taken[name] = with
			idle++
		}
	}
	return time.Duration(idle) * now.Sub(r.seen)
}

// leastHold is for how long a gang may keep its room idle of which nobody knows how long it runs, however short it has waited.
const leastHold = 10 * time.Minute

// MayHold reports whether the room may be kept for longer. A gang that runs for a time, as far as is known, may keep no more of the
// time of nodes idle than it will use. If nobody knows how long the gang runs, the time counts for which the gang had waited when the
// reservation began, and ten minutes at least. Since is since when the gang waits.
func (r *Reservation) MayHold(runs time.Duration, since time.Time) bool {
	if runs == 0 {
		runs = max(leastHold, r.begun.Sub(since))
	}
	return r.held/time.Duration(max(1, len(r.Members))) <= runs
}

// MayBegin reports whether a gang that has waited for a time may have a reservation in time. One of which nobody knows how long it runs
// has none in the first minute: most wait for less.
func MayBegin(runs, waited time.Duration) bool {
	return runs > 0 || waited >= time.Minute
}
