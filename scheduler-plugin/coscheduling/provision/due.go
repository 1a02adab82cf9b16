// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Mode is what becomes of a group that asks for room for members to come.
type Mode string

const (
	// Off has what it asks for mean nothing.
	Off Mode = "Off"
	// Strict has it start only when there is room for all of it, and keeps that.
	Strict Mode = "Strict"
	// BestEffort has it start with its minimum, and keeps what room there is.
	BestEffort Mode = "BestEffort"
)

// Terms are what the configuration says for the groups of a dialect in a namespace.
type Terms struct {
	Mode Mode
	// Longest is for how long room is kept at most without a member that comes; 0 for not at
	// all.
	Longest time.Duration
	// Percent is how much of each resource of the cluster may be kept for all groups of the
	// namespace.
	Percent int64
	// Preempts says that others may be evicted for members to come.
	Preempts bool
}

// Due is what room is to be kept for a gang. Nobody changes it.
type Due struct {
	Terms
	// Lacking is what the group asks for without what the members take that have a place. Least is
	// the least that the rest has been since the first of them has one: a member that goes
	// does not have more room kept.
	Lacking, Least Amounts
	// Started says that the gang has had its minimum, so that nothing but room for members to
	// come is sought.
	Started bool
	// Model is the largest member that waits or is placed; nil if there is none. ToCome is how many
	// members there are to be in all without those that are placed, 0 if that is not known.
	Model  *corev1.Pod
	ToCome int
	// Patience is for how long room is kept without a member that comes. End is until when it is
	// if none comes any more, and Last until when in any case: both are zero before a member is
	// placed, unless members before it had room kept that have gone.
	Patience  time.Duration
	End, Last time.Time
}

// EndWith is until when room is kept at most if a member comes now.
func (d *Due) EndWith(now time.Time) time.Time {
	end := now.Add(d.Patience)
	if !d.Last.IsZero() && end.After(d.Last) {
		return d.Last
	}
	return end
}

// RestWith is for how much room is to be kept when members are placed that take more.
func (d *Due) RestWith(more Amounts) Amounts {
	return d.Lacking.Less(more).AtMost(d.Least)
}

// Rest is for how much room is to be kept.
func (d *Due) Rest() Amounts {
	return d.RestWith(nil)
}

// Cut cuts the rest that is left when members more are placed, which take more, into virtual
// members.
func (d *Due) Cut(members int, more Amounts) []Virtual {
	toCome := 0
	if d.ToCome > 0 {
		toCome = max(1, d.ToCome-members)
	}
	return Cut(d.RestWith(more), OfPod(d.Model), toCome)
}
