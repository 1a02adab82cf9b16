// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// barrierLifetime is how long a gang may have a barrier at most, in units of its patience.
const barrierLifetime = 10

// barrierPatience is after how many times its patience a barrier ends that its gang has
// not given up although it did not grow: the gang has had no turn.
const barrierPatience = 2

// Barrier keeps room back for a gang that starves, until Pods that run there have ended by
// themselves. Its patience is how long it may be without growing: without that one of these
// Pods ends.
type Barrier struct {
	claim
	// begun is when the gang first had a barrier. Grown is when one of the awaited Pods was
	// last seen to be gone, and left is how many were not. The barrier's end is
	// barrierPatience times its patience after grown.
	begun, grown time.Time
	left         int
}

var _ Claim = &Barrier{}

// NewBarrier is the first barrier of a gang since it starves. Pods that are awaited on other
// nodes than those of the members don't concern it.
func NewBarrier(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, patience time.Duration, now time.Time) *Barrier {
	b := &Barrier{claim: newClaim(gang, members, awaited, now.Add(barrierPatience*patience)), begun: now, grown: now}
	b.left = len(b.awaited)
	return b
}

// MovedTo is the barrier in another place, where other Pods are awaited. It is no younger
// for that, and has not grown.
func (b *Barrier) MovedTo(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo) *Barrier {
	moved := &Barrier{claim: newClaim(gang, members, awaited, b.end), begun: b.begun, grown: b.grown}
	moved.left = len(moved.awaited)
	return moved
}

// Since is since when the gang has a barrier, wherever it was.
func (b *Barrier) Since() time.Time { return b.begun }

// Patience is how long the barrier may be without growing.
func (b *Barrier) Patience() time.Duration {
	return b.end.Sub(b.grown) / barrierPatience
}

// PatientUntil is when the barrier is to be given up, unless it grows before.
func (b *Barrier) PatientUntil() time.Time {
	return b.grown.Add(b.Patience())
}

// Verdict is what becomes of a barrier.
type Verdict int

const (
	// Stay has the barrier stay where it is: the awaited Pods are ending, one after the
	// other, and nobody else has taken what they leave.
	Stay Verdict = iota
	// Move has another place be sought: there is nothing left to wait for, and the gang does
	// not fit all the same; or a node is gone, or its room is.
	Move
	// GiveUp ends the barrier: it has not grown for its patience, or is too old.
	GiveUp
)

// Look says what becomes of a barrier when its gang is planned, has found no place, and
// still starves. The barrier that it returns has grown if fewer of the awaited Pods are left.
//
// It stays where it is as long as its room can be had there: if it moved to whatever is free
// at the moment, it would take the place of a Pod that is being replaced.
func (b *Barrier) Look(nodes Nodes, now time.Time) (*Barrier, Verdict) {
	left := b.remaining(nodes)
	if left < b.left {
		b = b.grownTo(left, now)
	}
	switch patience := b.Patience(); {
	case now.Sub(b.grown) >= patience, now.Sub(b.begun) >= barrierLifetime*patience:
		return b, GiveUp
	case left > 0 && b.stands(nodes):
		return b, Stay
	}
	return b, Move
}

// grownTo is the barrier when fewer of the awaited Pods are left.
func (b *Barrier) grownTo(left int, now time.Time) *Barrier {
	grown := *b
	grown.left, grown.grown, grown.end = left, now, now.Add(barrierPatience*b.Patience())
	return &grown
}

// remaining is how many of the awaited Pods are still there.
func (b *Barrier) remaining(nodes Nodes) int {
	left := 0
	for name := range b.byNode {
		node, err := nodes.Get(name)
		if err != nil {
			continue // the node is gone, and they with it
		}
		for _, pod := range node.GetPods() {
			if _, awaited := b.awaited[pod.GetPod().UID]; awaited {
				left++
			}
		}
	}
	return left
}

// stands says whether the room is, or will be, there when the awaited Pods have ended.
func (b *Barrier) stands(nodes Nodes) bool {
	for name := range b.byNode {
		node, err := nodes.Get(name)
		if err != nil || !b.Reserved(node).IsFreeOn(node) {
			return false
		}
	}
	return true
}

// NodeFor is no node: the work that the gang waits for may run for long.
func (b *Barrier) NodeFor(types.UID) string { return "" }

// IsKeptFromPod is true for ordinary Pods of lower priority, and for those of the gang's
// that came after it: the ones before it are few, and have waited longer. It is not kept
// from a Pod of a DaemonSet, which can run nowhere else, nor wait for as long as gangs do.
func (b *Barrier) IsKeptFromPod(pod *corev1.Pod) bool {
	if isOfDaemonSet(pod) {
		return false
	}
	rank, priority := b.gang.Rank, corev1helpers.PodPriority(pod)
	return rank.Priority > priority || rank.Priority == priority && rank.Created.Before(pod.CreationTimestamp.Time)
}

// IsKeptFromGang is false for a gang that is broken: this one may be waiting for its
// members to end, and they for the ones that are missing. It is so for one that waits for the rest of
// its members, too, once.
func (b *Barrier) IsKeptFromGang(behind Behind) bool {
	return !behind.Broken && !behind.Passes
}

// isOfDaemonSet says whether a Pod is one of a DaemonSet.
func isOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// EndsByItself says whether a barrier may wait for the end of an ordinary Pod: it is not
// restarted for ever, or has a deadline. One of a Deployment, a StatefulSet or a DaemonSet
// does not end, and a static one neither.
func EndsByItself(pod *corev1.Pod) bool {
	always := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
	return !always || pod.Spec.ActiveDeadlineSeconds != nil
}
