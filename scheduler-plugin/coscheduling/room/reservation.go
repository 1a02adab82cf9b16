// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Reservation is the room that preemption makes, while the victims end. It is kept from all
// that don't outrank the gang, or others would have what the victims were evicted for.
type Reservation struct{ claim }

var _ Claim = &Reservation{}

// NewReservation keeps room until the victims should have ended. There may be none: the
// gang is planned again while those of the reservation before, nil for none, are ending.
// Its end stays.
func NewReservation(gang Gang, members []*framework.PodInfo, victims []*corev1.Pod, before *Reservation, now time.Time) *Reservation {
	var end time.Time
	if before != nil {
		end = before.end
	}
	for _, pod := range victims {
		end = later(end, now.Add(gracePeriod(pod)+EvictionPatience))
	}
	return &Reservation{newClaim(gang, members, end)}
}

// IsKeptFromPod is true for all ordinary Pods that don't outrank the gang.
func (r *Reservation) IsKeptFromPod(pod *corev1.Pod) bool {
	return r.gang.Rank.Priority >= corev1helpers.PodPriority(pod)
}

// IsKeptFromGang is true for all.
func (r *Reservation) IsKeptFromGang(Behind) bool { return true }
