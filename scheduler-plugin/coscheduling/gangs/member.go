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
	// memberOut: the member neither waits nor is placed. It has failed, is being deleted or preempted, has scheduling
	// gates, has another scheduler, or is a stranger. The state ends when the gates are removed, when the preemption
	// fails, or when the owner of the Pod or of the group changes.
	memberOut memberState = iota
	// memberWaiting: this scheduler is to place the member. The state ends when a cycle assumes the member on a node,
	// another scheduler binds it, or it is deleted.
	memberWaiting
	// memberPlaced: the member is assumed on a node, is bound, or has succeeded, and counts towards the minimum. The
	// state ends when the binding fails, the Pod fails, or the Pod is deleted.
	memberPlaced
)

// member is the record of a Pod that names a gang's group. The Pod is a member of the gang, unless the group does not
// accept it, for instance because the Pod has another owner (a stranger, stranger.go).
type member struct {
	pod *corev1.Pod
	// assumed is the node of a member that was placed and is not seen bound yet; otherwise "".
	assumed string
	// placement is the number of the last placement of the member.
	placement int
	// leaving reports that the member is being preempted. It is set as soon as the member is chosen as a victim, and
	// then the member no longer counts. Otherwise other members could still be placed while the victims are deleted,
	// and then be all that is left of the gang. If it turns out that the member has ended by itself, leaving is reset.
	leaving bool
	// succeeded reports that the Pod has succeeded by itself, as package podend decides. A Pod that is deleted and then
	// exits with 0 has not succeeded. A Pod that succeeds and is then deleted, but kept by a finalizer, has.
	succeeded bool
	// attempt is the result of the last attempt to preempt the member for an ordinary Pod.
	attempt attempt
	// spared reports that the gang had its minimum even without the member when the member was deleted.
	spared bool
	// strangerSince is when the Pod was found to be a stranger, zero for a member; see stranger.go.
	strangerSince time.Time
	// seen is when the Pod was first seen naming the group.
	seen time.Time
	// minimum is the gang's minimum that the Pod states, 0 if it states none.
	minimum int32
	// class is the Pod's class key, "" if not computed yet.
	class string
	// placedSince is when the Pod was observed to get its present place, by the scheduler's clock. It is zero if the
	// Pod had the place when it was first observed.
	placedSince time.Time
}

// attempt is the state of this scheduler's last attempt to preempt a member for an ordinary Pod.
type attempt int

const (
	// noAttempt: the mark says whether the member is preempted.
	noAttempt attempt = iota
	// underway: the Pod is being deleted. This counts as preemption even if the mark on the Pod is never seen, because
	// a watch may break until the Pod is gone.
	underway
	// failed: the Pod stays, and may still have the mark.
	failed
	// givenBack: the member lost its place before it was bound. The Pod is not bound there and not deleted; it waits
	// again.
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

// state returns the member's state. serves reports whether this scheduler serves a scheduler name.
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

// node returns the node on which the member is or is about to be bound, "" for none.
func (m *member) node() string {
	return cmp.Or(m.pod.Spec.NodeName, m.assumed)
}

// bound reports whether the member is bound to a node according to the API server, or has succeeded.
func (m *member) bound() bool {
	if m.isStranger() || m.leaving {
		return false
	}
	return m.succeeded ||
		m.pod.Spec.NodeName != "" && m.pod.Status.Phase != corev1.PodFailed && m.pod.DeletionTimestamp == nil
}

// compareMembers orders members by priority, then by name, then by UID, so no two members are equal. The order of two
// Pods never changes.
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
