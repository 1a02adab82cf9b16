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
	// Preemption: Pods are ending, as victims or on their own, and the gang has its place once they are gone.
	Preemption Reason = "Preemption"
	// InTime: the gang is the first that waits. It gets the room that running work leaves when it ends, and needs all
	// of that room from a certain time on.
	InTime Reason = "InTime"
	// MembersToCome: the gang has started, and announces members that do not exist yet.
	MembersToCome Reason = "MembersToCome"
)

// ReplacementGrace is how long a reservation stays after a waiting member was deleted, because the member's controller
// may create a replacement.
const ReplacementGrace = 5 * time.Second

// rule is what holds for all reservations with a reason.
type rule struct {
	// olderPods: a Pod with the same priority as the gang may use the room if the Pod is older than the gang.
	olderPods bool
	// daemonSets: Pods of DaemonSets may use the room, as they can run nowhere else.
	daemonSets bool
	// incomplete: a running gang that itself waits for more members may use the room. Otherwise the two gangs could
	// wait for each other.
	incomplete bool
	// backfills: work that ends before the gang needs the room may use the room.
	backfills bool
	// capped: the room is limited to a share of the cluster.
	capped bool
	// nominates: the members are nominated for their reserved nodes, because they go there as soon as Pods have ended.
	nominates bool
	// grace is how long the reservation outlives the wait of its gang.
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

// IsCapped reports whether reservations with the reason are limited to a share of the cluster.
func (r Reason) IsCapped() bool { return r.rule().capped }

// Grace returns how long the reservation outlives the wait of its gang.
func (r *Reservation) Grace() time.Duration {
	if r.isVacancy() {
		return 0
	}
	return r.Reason.rule().grace
}

// isVacancy reports whether all of the reserved room becomes free by Pods that end by themselves. The gang has evicted
// no Pod for it, so only work of lower priority, which the gang could evict, may not use the room; work of the same
// priority may.
func (r *Reservation) isVacancy() bool { return r.Reason == Preemption && !r.Evicted }

// Taker is an ordinary Pod or a gang that may want room.
type Taker struct {
	priority  int32
	created   time.Time
	daemonSet bool
	// rank is the gang's rank, nil for a Pod.
	rank       *queue.Rank
	incomplete bool
	// until is when the Pod or gang ends if started now, zero if unknown.
	until time.Time
}

// PodTaker returns a Taker for an ordinary Pod. `until` is when the Pod ends if started now, zero if unknown.
func PodTaker(pod *corev1.Pod, until time.Time) Taker {
	return Taker{until: until, priority: corev1helpers.PodPriority(pod), created: pod.CreationTimestamp.Time, daemonSet: IsOfDaemonSet(pod)}
}

// IsOfDaemonSet reports whether a DaemonSet controls a Pod.
func IsOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// GangTaker returns a Taker for a gang. incomplete reports that some members run, and that the gang waits for further
// ones: members were lost, or spec.provision asks for more. `until` is when the gang ends if started now, zero if
// unknown.
func GangTaker(rank queue.Rank, incomplete bool, until time.Time) Taker {
	return Taker{until: until, priority: rank.Priority, created: rank.Created, rank: &rank, incomplete: incomplete}
}

// IsKeptFrom reports whether a Pod or a gang has to leave a reservation alone.
func (r *Reservation) IsKeptFrom(t Taker) bool {
	of, rule := r.Gang.Rank, r.Reason.rule()
	switch {
	case t.rank != nil && (t.rank.Key == of.Key || of.Compare(*t.rank) >= 0):
		return false // the gang is ahead in the queue
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
