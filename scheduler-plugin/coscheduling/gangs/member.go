// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// memberState is what a member means to its gang.
type memberState int

const (
	// memberOut neither waits nor is placed: it failed, is being deleted or preempted, has scheduling gates or another
	// scheduler, or is a stranger. Exits: a replacement, the end of the gates, a failed or late preemption, or a new
	// controller of the Pod or the group.
	memberOut memberState = iota
	// memberWaiting is to be placed by this scheduler. Exits: assumed in a cycle, bound by another scheduler, deleted.
	memberWaiting
	// memberPlaced is assumed on a node, bound, or has succeeded, and counts towards the minimum. Exits: a failed
	// binding, a failure, a deletion.
	memberPlaced
)

// member is a Pod that names a gang's group, and is a member unless it is a stranger.
type member struct {
	pod *corev1.Pod
	// assumed is the node of a member that is not yet observed as bound, else "".
	assumed string
	// placement is the number of the last placement of the member.
	placement int
	// leaving reports that the member is being preempted. It does not count from the moment of that decision: otherwise
	// a sibling placed while the victims go one by one would be all that is left of the gang. A member that turns out
	// to have ended by itself is no longer leaving.
	leaving bool
	// succeeded reports that the Pod has succeeded by itself, as package podend judges. A Pod that is deleted first and
	// then exits with 0 has not. A Pod that has succeeded and is then deleted, but kept by a finalizer, has.
	succeeded bool
	// attempt is what has come of the last attempt of an ordinary Pod to preempt the member.
	attempt attempt
	// spared reports that the gang had its minimum without the member when the member was deleted.
	spared bool
	// strangerSince is when the Pod was found to be a stranger; see stranger.go. Zero for a member.
	strangerSince time.Time
	// seen is when the Pod was first seen naming the group.
	seen time.Time
	// minimum is the gang's minimum according to the Pod; 0 if the Pod does not say.
	minimum int32
	// class is the Pod's class key, "" if not computed yet.
	class string
	// placedSince is when the Pod was seen to get its present place, by the scheduler's clock; zero if the Pod already
	// had the place when first seen.
	placedSince time.Time
}

// attempt is the last attempt of this scheduler to have an ordinary Pod preempt a member.
type attempt int

const (
	// noAttempt: the mark says whether the member is preempted.
	noAttempt attempt = iota
	// underway: the Pod is being deleted. The mark may never be seen, as a watch may break until the Pod is gone.
	underway
	// failed: the Pod stays, and may still have the mark.
	failed
	// givenBack: the member was taken from its present placement before it was bound. The Pod will not be bound, and is not
	// deleted.
	givenBack
)

// settle drops givenBack once the member has a new place.
func (m *member) settle() {
	if m.attempt == givenBack {
		m.attempt = noAttempt
	}
}

// show updates the member from its Pod.
func (m *member) show(pod *corev1.Pod) {
	m.pod = pod
	if m.attempt == failed && !isPreempted(pod) {
		m.attempt = noAttempt // the old mark is gone; a new one is of another preemption
	}
	m.succeeded = m.succeeded || podend.Of(pod).Succeeded()
}

// state returns what a member counts as. serves reports which scheduler names this scheduler serves.
func (m *member) state(serves func(schedulerName string) bool) memberState {
	pod := m.pod
	switch {
	case m.isStranger(), m.leaving:
		return memberOut
	case m.succeeded:
		return memberPlaced
	case pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil:
		return memberOut
	case m.node() != "":
		return memberPlaced
	case len(pod.Spec.SchedulingGates) > 0, !serves(pod.Spec.SchedulerName):
		return memberOut
	default:
		return memberWaiting
	}
}

// node returns the node where the member is or is about to be, or "".
func (m *member) node() string {
	return cmp.Or(m.pod.Spec.NodeName, m.assumed)
}

// bound reports whether the API server knows the member's node, or the member has succeeded.
func (m *member) bound() bool {
	if m.isStranger() || m.leaving {
		return false
	}
	return m.succeeded ||
		m.pod.Spec.NodeName != "" && m.pod.Status.Phase != corev1.PodFailed && m.pod.DeletionTimestamp == nil
}

// compareMembers orders members by priority, then by name. The order is total, and a Pod's place never changes.
func compareMembers(a, b *corev1.Pod) int {
	return cmp.Or(
		-cmp.Compare(corev1helpers.PodPriority(a), corev1helpers.PodPriority(b)),
		compareNames(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// compareNames puts worker-9 before worker-10: shorter first.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// sortMembers orders members in place.
func sortMembers(pods []*corev1.Pod) {
	slices.SortFunc(pods, compareMembers)
}
