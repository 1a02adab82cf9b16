// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Reservation is the room that preemption makes, while the victims end. It is kept from all
// that don't outrank the gang, or others would have what the victims were evicted for.
type Reservation struct{ claim }

var _ Claim = &Reservation{}

// NewReservation keeps room until a time: when the awaited Pods should have ended, the victims
// and those that end anyway.
func NewReservation(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Reservation {
	return &Reservation{newClaim(gang, members, awaited, end)}
}

// IsKeptFromPod is true for all ordinary Pods that don't outrank the gang.
func (r *Reservation) IsKeptFromPod(pod *corev1.Pod) bool {
	return r.gang.Rank.Priority >= corev1helpers.PodPriority(pod)
}

// IsKeptFromGang is true for all.
func (r *Reservation) IsKeptFromGang(Behind) bool { return true }
