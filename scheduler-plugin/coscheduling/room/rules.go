// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Reason is why room is reserved for a gang.
type Reason string

const (
	// Preemption: Pods are ending, victims among them or not, and the gang has its place when they have gone.
	Preemption Reason = "Preemption"
	// InTime: the gang is the first one that waits. What work leaves that ends by itself is kept for it, and it needs all of it from a
	// time on.
	InTime Reason = "InTime"
	// MembersToCome: the gang has started, and announces members that do not exist yet.
	MembersToCome Reason = "MembersToCome"
)

// ReplacementGrace is how long room outlives a member that waits, as whoever made the member may make another.
const ReplacementGrace = 5 * time.Second

// rule is what is so of all reservations of a reason.
type rule struct {
	// olderPods says that a Pod of the gang's own priority may use the room if it is older than the gang.
	olderPods bool
	// daemonSets says that Pods of DaemonSets may use the room: they can run nowhere else.
	daemonSets bool
	// incomplete says that a gang may use the room that runs and waits for members of its own: the gang with the
	// reservation may be waiting for its end.
	incomplete bool
	// backfills says that work may use the room which ends before the gang needs it.
	backfills bool
	// capped says that the room is limited to a share of the cluster.
	capped bool
	// nominates says that the members go where their room is as soon as Pods have ended.
	nominates bool
	// grace is for how long the reservation outlives the wait of its gang.
	grace time.Duration
}

// rule returns the row of the table for a reason.
func (r Reason) rule() rule {
	switch r {
	case InTime:
		return rule{olderPods: true, daemonSets: true, incomplete: true, capped: true, backfills: true}
	case MembersToCome:
		return rule{daemonSets: true, capped: true}
	case Preemption:
	}
	return rule{nominates: true, grace: ReplacementGrace}
}

// IsCapped reports whether reservations for the reason are limited to a share of the cluster.
func (r Reason) IsCapped() bool { return r.rule().capped }

// Grace returns for how long the reservation outlives the wait of its gang.
func (r *Reservation) Grace() time.Duration {
	if r.isVacancy() {
		return 0
	}
	return r.Reason.rule().grace
}

// isVacancy reports whether the room is that of Pods which end anyway. Nobody was evicted for it, so it is kept only from
// work that the gang might as well have evicted.
func (r *Reservation) isVacancy() bool { return r.Reason == Preemption && !r.Evicted }

// Taker is an ordinary Pod or a gang that may want room.
type Taker struct {
	priority  int32
	created   time.Time
	daemonSet bool
	// rank is that of a gang, nil for a Pod.
	rank       *queue.Rank
	incomplete bool
	// until is when it ends if it starts now, zero if nobody knows.
	until time.Time
}

// PodTaker returns an ordinary Pod as a Taker. If it starts now it ends at a time, zero if nobody knows.
func PodTaker(pod *corev1.Pod, until time.Time) Taker {
	return Taker{until: until, priority: corev1helpers.PodPriority(pod), created: pod.CreationTimestamp.Time, daemonSet: IsOfDaemonSet(pod)}
}

// IsOfDaemonSet reports whether a DaemonSet has made a Pod.
func IsOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// GangTaker returns a gang as a Taker. Incomplete says that some of its members run, and that it waits for others which it has
// lost or announced. If it starts now it ends at a time, zero if nobody knows.
func GangTaker(rank queue.Rank, incomplete bool, until time.Time) Taker {
	return Taker{until: until, priority: rank.Priority, created: rank.Created, rank: &rank, incomplete: incomplete}
}

// IsKeptFrom reports whether a Pod or a gang has to leave a reservation alone.
func (r *Reservation) IsKeptFrom(t Taker) bool {
	of, rule := r.Gang.Rank, r.Reason.rule()
	switch {
	case t.rank != nil && (t.rank.Key == of.Key || of.Compare(*t.rank) >= 0):
		return false // it is ahead in the queue
	case rule.backfills && !t.until.IsZero() && !t.until.After(r.From):
		return false
	case t.daemonSet && rule.daemonSets, t.incomplete && rule.incomplete:
		return false
	case of.Priority != t.priority:
		return of.Priority > t.priority
	case r.isVacancy():
		return false
	}
	return !rule.olderPods || t.rank != nil || of.Created.Before(t.created)
}
