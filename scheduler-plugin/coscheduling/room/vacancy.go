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

// Vacancy is the room of Pods that end anyway. Nobody was evicted for it, so it is kept
// only from work that the gang might as well have evicted: what has lower priority.
type Vacancy struct{ claim }

var _ Claim = &Vacancy{}

// NewVacancy keeps room until a time: when the awaited Pods should have ended.
func NewVacancy(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Vacancy {
	return &Vacancy{newClaim(gang, members, awaited, end)}
}

// IsKeptFromPod is true for ordinary Pods of lower priority.
func (v *Vacancy) IsKeptFromPod(pod *corev1.Pod) bool {
	return v.gang.Rank.Priority > corev1helpers.PodPriority(pod)
}

// IsKeptFromGang is true for gangs of lower priority.
func (v *Vacancy) IsKeptFromGang(behind Behind) bool {
	return v.gang.Rank.Priority > behind.Rank.Priority
}
