// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// NextPhase returns the phase that follows current for a group with these counts of members. For a new group current
// is empty. It makes one legal step:
//
//	Pending   -> Running, Completed
//	Running   -> Unknown, Completed
//	Unknown   -> Running, Pending, Completed
//	Completed -> Pending
//
// A change that needs two steps needs two calls, such as from Running to Pending when all members are deleted at once.
// No change needs more.
func NextPhase(current schedulingv1alpha1.PodGroupPhase, spec *schedulingv1alpha1.PodGroupSpec, counts Counts) schedulingv1alpha1.PodGroupPhase {
	if counts.Ended() {
		return schedulingv1alpha1.PodGroupCompleted
	}
	active := counts.Active()
	switch current {
	case schedulingv1alpha1.PodGroupCompleted:
		// Ended members may be removed without undoing that they ended. A member that has not ended is a replacement.
		if counts.Members.Total == 0 {
			return schedulingv1alpha1.PodGroupCompleted
		}
		return schedulingv1alpha1.PodGroupPending

	case schedulingv1alpha1.PodGroupRunning:
		// Members that are on their nodes and start again come back by
		// themselves.
		if Holds(spec, active) || Holds(spec, counts.Placed()) {
			return schedulingv1alpha1.PodGroupRunning
		}
		return schedulingv1alpha1.PodGroupUnknown

	case schedulingv1alpha1.PodGroupUnknown:
		// Replacements that are placed but do not run yet are not a recovery: otherwise a group that loses members again
		// would not be seen as Unknown, and its recoveryTimeoutSeconds would never pass.
		switch {
		case Holds(spec, active):
			return schedulingv1alpha1.PodGroupRunning
		case active.Total > 0:
			return schedulingv1alpha1.PodGroupUnknown
		default:
			return schedulingv1alpha1.PodGroupPending
		}

	default: // Pending, or new.
		if Holds(spec, active) {
			return schedulingv1alpha1.PodGroupRunning
		}
		return schedulingv1alpha1.PodGroupPending
	}
}
