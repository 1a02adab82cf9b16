// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// longestUnseen is how long a reservation in time lasts without renewal. The gang renews its reservation in each of its
// cycles.
const longestUnseen = 10 * time.Minute

// Ends has, by UID, the time at which a Pod ends by itself, zero if unknown. A Pod that is missing in Ends does not
// end.
type Ends map[types.UID]time.Time

// progress is what a reservation in time remembers.
type progress struct {
	// left is how many Pods have to end before the gang has its place.
	left int
	// announced is the value of From for which other gangs and Pods were last woken. They are woken again only if From
	// becomes notably later.
	announced time.Time
	// begun is when the gang's first reservation began, in an unbroken series.
	begun time.Time
	// seen is when the gang had its last cycle. held is how long the gang's room had been idle by then, as a sum over
	// the members, while no other work could use it. unused is the room that was idle so since the cycle before, for the time
	// unusedFor.
	seen      time.Time
	held      time.Duration
	unused    provision.Amounts
	unusedFor time.Duration
}

// NewInTime returns a reservation of room for members on their nodes. The gang needs the room from the time at which
// there is room for all members; ends says which Pods end by then. barring are Pods that have to end even if the nodes
// have room without that; Pods that are not on these nodes, or do not end, are ignored. The result is nil if some node
// never has the room.
func NewInTime(gang Gang, members []*framework.PodInfo, barring sets.Set[types.UID], ends Ends, nodes Nodes, now time.Time) *Reservation {
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
		lacks := lacks(r.byNode[name], nil, node)
		needs := 0
		for ; !lacks.IsZero() && needs < len(pods); needs++ {
			lacks = lacks.Less(TakesOf(pods[needs]))
		}
		if !lacks.IsZero() {
			return nil
		}
		for i, pod := range pods {
			end, must := ends[pod.GetPod().UID], i < needs || barring.Has(pod.GetPod().UID)
			if must {
				r.left++
				known = known && !end.IsZero()
				r.From = times.Later(r.From, end)
			}
			if must || !end.IsZero() {
				awaited = append(awaited, pod)
			}
		}
	}
	if !known {
		r.From = time.Time{}
	}
	for _, pod := range awaited {
		if at := ends[pod.GetPod().UID]; !known || !at.After(r.From) {
			r.await(pod)
		}
	}
	return r
}

// inOrder returns the Pods of a node that end, the earliest end first.
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

// Renewed returns r with the ends of Pods as they are known now, or nil if the gang has no place on r's nodes any more. For
// barring see NewInTime.
func (r *Reservation) Renewed(gang Gang, barring sets.Set[types.UID], ends Ends, nodes Nodes, now time.Time) *Reservation {
	stays := NewInTime(gang, r.Members, barring, ends, nodes, now)
	if stays != nil && r.From.IsZero() {
		// The gang keeps waiting for the same work, rather than take the room of a service's Pod that is being
		// replaced.
		for uid, pod := range r.awaits {
			if at, runs := ends[uid]; runs && at.IsZero() {
				stays.awaits[uid], stays.From = pod, time.Time{}
			}
		}
	}
	return stays
}

// Better returns the reservation that a gang gets: `stays` is on the nodes of the gang's earlier reservation, and `other`
// was found now. Either may be nil. The result is `other` only if that is worthwhile, or if the gang asks for other amounts
// than before, or if `other` is on the same nodes: the search knows which Pods are in the way there.
func Better(stays, other *Reservation, now time.Time) *Reservation {
	switch {
	case stays == nil:
		return other
	case other == nil:
		return stays
	case !other.Takes.Equal(stays.Takes), stays.IsWorseThan(other.From, other.left, now):
		return other
	case !stays.From.IsZero() && onSameNodes(stays, other):
		return other
	}
	return stays
}

// Continue makes r the continuation of the gang's earlier reservation. The time for which room was idle for the gang
// counts from the first reservation on.
func (r *Reservation) Continue(before *Reservation, nodes Nodes, now time.Time) {
	r.begun, r.held = before.begun, before.held
	if before.hasGap() {
		return
	}
	members, unused := before.idle(nodes)
	r.unused, r.unusedFor = unused, now.Sub(before.seen)
	r.held = times.Sum(before.held, time.Duration(members)*r.unusedFor)
}

// isLaterThan reports whether the gang needs its room so much later than announced that others have to be woken: by at
// least a minute, and by at least a tenth of the time that was left. Without these limits, others would be woken all
// the time while work runs longer than its estimate, as From then moves with the clock.
func (r *Reservation) isLaterThan(announced time.Time) bool {
	switch {
	case r.From.IsZero():
		return false
	case announced.IsZero():
		return true
	default:
		return r.From.Sub(announced) >= max(time.Minute, announced.Sub(r.seen)/10)
	}
}

// IsWorseThan reports whether it is worthwhile to move from r to a place that is free at the time `from` (zero:
// unknown), after the end of `left` Pods. It is if fewer Pods have to end by the same time, or if the gang has its room
// earlier by at least a minute and at least a tenth of the time left. Stated ends are mostly too late, so a place for
// which fewer Pods have to end is better, even if it is to be free at the same time.
func (r *Reservation) IsWorseThan(from time.Time, left int, now time.Time) bool {
	switch {
	case from.IsZero() && r.From.IsZero():
		return left < r.left-r.left/10
	case from.IsZero() || r.From.IsZero():
		return r.From.IsZero()
	case !from.After(r.From) && left < r.left:
		return true
	}
	return from.Add(max(time.Minute, r.From.Sub(now)/10)).Before(r.From)
}

// RenewAt returns when the gang is to have its next cycle even if nothing happens, so that the reservation follows the ends of
// work, which may have changed: after a tenth of the time until the gang needs the room, but after a minute at least and half of
// longestUnseen at most. It is the time at which the gang needs the room if that is earlier.
func (r *Reservation) RenewAt(now time.Time) time.Time {
	left := r.From.Sub(now)
	if 0 < left && left < time.Minute {
		return r.From
	}
	return now.Add(min(max(time.Minute, left/10), longestUnseen/2))
}

// idle returns for how many members there is room on their nodes, and how much room that is.
func (r *Reservation) idle(nodes Nodes) (members int, unused provision.Amounts) {
	unused = make(provision.Amounts)
	taken := make(map[string]provision.Amounts)
	for _, m := range r.Members {
		name, takes := m.Pod.Spec.NodeName, TakesOf(m)
		with := takes.Plus(taken[name])
		if node, err := nodes.Get(name); err == nil && lacks(with, nil, node).IsZero() {
			taken[name] = with
			unused.Add(takes)
			members++
		}
	}
	return members, unused
}

// hasGap reports whether there is time until the gang needs its room, so that short work may use the room.
func (r *Reservation) hasGap() bool { return r.From.After(r.seen) }

// leastHold is for how long any gang may keep its reserved room idle; see MayHold.
const leastHold = 10 * time.Minute

// MayHold reports whether the room may be kept longer. It may as long as short work may use it. Otherwise, because what
// the gang waits for may never end, the gang may keep nodes idle for leastHold. It may keep them longer until they have been idle for as
// long as the gang runs, or as it had waited when the reservation began, whichever is longer, and while no more is owed than it had
// waited; see Idle. `runs` is 0 if the run time is unknown. `since` is when the gang began to wait.
func (r *Reservation) MayHold(runs time.Duration, since time.Time, owed time.Duration) bool {
	idle, waited := r.held/time.Duration(max(1, len(r.Members))), r.begun.Sub(since)
	return r.hasGap() || idle <= leastHold || idle <= max(runs, waited) && owed <= waited
}

// MayBegin reports whether a gang may have a reservation in time after it has waited for a time. A gang whose run time
// is unknown (0) has to wait for a minute first, because most gangs start earlier.
func MayBegin(runs, waited time.Duration) bool {
	return runs > 0 || waited >= time.Minute
}
