// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// longestStarvation is how long a gang that starves may have a reservation at most, in units of its patience.
const longestStarvation = 10

// unseenPatience is after how many times its patience a reservation ends that its gang has not given up although it did not
// grow: the gang has had no cycle.
const unseenPatience = 2

// progress is that of a gang that starves. Its reservation stays until Pods that run there have ended by themselves. It grows
// when one of them ends, and has patience for so long without that.
type progress struct {
	// begun is when the gang first had the reservation. Grown is when one of the awaited Pods was last seen to be gone, and
	// left is how many were not. The reservation ends unseenPatience times its patience after grown.
	begun, grown time.Time
	left         int
}

// NewStarvation returns the first reservation of a gang since it starves.
func NewStarvation(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, patience time.Duration, now time.Time) *Reservation {
	r := New(gang, Starvation, members, awaited, now.Add(unseenPatience*patience))
	r.progress = progress{begun: now, grown: now, left: len(r.awaits)}
	return r
}

// MovedTo returns the reservation in another place, where other Pods are awaited. It is no younger for that, and has not grown.
func (r *Reservation) MovedTo(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo) *Reservation {
	moved := New(gang, r.Reason, members, awaited, r.End)
	moved.progress = progress{begun: r.begun, grown: r.grown, left: len(moved.awaits)}
	return moved
}

// Patience returns how long the reservation may be without growing.
func (r *Reservation) Patience() time.Duration {
	return r.End.Sub(r.grown) / unseenPatience
}

// PatientUntil returns when the reservation is to be given up, unless it grows before.
func (r *Reservation) PatientUntil() time.Time {
	return r.grown.Add(r.Patience())
}

// Verdict is what becomes of the reservation of a gang that starves.
type Verdict int

const (
	// Stay: the awaited Pods are ending, one after the other, and nobody else has taken what they leave.
	Stay Verdict = iota
	// Move: another place is to be sought. There is nothing left to wait for, and the gang does not fit all the same; or a
	// node is gone, or its room is.
	Move
	// GiveUp: it has not grown for its patience, or is too old.
	GiveUp
)

// Look returns what becomes of the reservation when its gang is planned, has found no place, and still starves. The reservation
// that it returns has grown if fewer of the awaited Pods are left.
//
// It stays where it is as long as its room can be had there: if it moved to whatever is free at the moment, it would take the
// place of a Pod that is being replaced.
func (r *Reservation) Look(nodes Nodes, now time.Time) (*Reservation, Verdict) {
	left := r.remaining(nodes)
	if left < r.left {
		grown := *r
		grown.left, grown.grown, grown.End = left, now, now.Add(unseenPatience*r.Patience())
		r = &grown
	}
	switch patience := r.Patience(); {
	case now.Sub(r.grown) >= patience, now.Sub(r.begun) >= longestStarvation*patience:
		return r, GiveUp
	case left > 0 && r.stands(nodes):
		return r, Stay
	}
	return r, Move
}

// remaining is how many of the awaited Pods are still there.
func (r *Reservation) remaining(nodes Nodes) int {
	left := 0
	for name := range r.byNode {
		node, err := nodes.Get(name)
		if err != nil {
			continue // the node is gone, and they with it
		}
		for _, pod := range node.GetPods() {
			if _, awaited := r.awaits[pod.GetPod().UID]; awaited {
				left++
			}
		}
	}
	return left
}

// stands reports whether the room is, or will be, there when the awaited Pods have ended.
func (r *Reservation) stands(nodes Nodes) bool {
	for name := range r.byNode {
		node, err := nodes.Get(name)
		if err != nil || !Fits(r.Reserved(node), nil, node) {
			return false
		}
	}
	return true
}

// EndsByItself reports whether the end of an ordinary Pod may be waited for: it is not restarted for ever, or has a deadline. One
// of a Deployment, a StatefulSet or a DaemonSet does not end, and a static one neither.
func EndsByItself(pod *corev1.Pod) bool {
	always := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
	return !always || pod.Spec.ActiveDeadlineSeconds != nil
}
