// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// preparingTimeoutSeconds of a role ends the attempts of tasks with Pods that don't run for too long. The time runs
// from the first sight of the Pod, and in a gang from the first sight of a node: how long a gang may wait for a turn
// is for scheduleTimeoutSeconds to say. The status has since when. An attempt ends only by what of that is persisted,
// so that a restart of the controller does not begin the time anew; one in the few seconds before the first write
// does.
//
// The watch of Pods may be behind by more than the time: a running Pod would be ended because of a stale cache. So
// all Pods of the attempt are looked at live before one is ended.

// endsByPreparing ends a task's attempt if the attempt has been preparing for too long. endsByPreparing returns whether
// it did.
func (t cursor) endsByPreparing(pod *corev1.Pod) bool {
	timeout := seconds(nil)
	if t.spec != nil {
		timeout = seconds(t.spec.PreparingTimeoutSeconds)
	}
	since := t.status().AttemptStatus.PreparingSince
	if counts := timeout > 0 && (pod.Spec.NodeName != "" || !t.d.isGang()); !counts {
		if since != nil {
			t.edit().AttemptStatus.PreparingSince = nil
		}
		return false
	}
	if since == nil {
		since = t.d.timeNow()
		t.edit().AttemptStatus.PreparingSince = since
	}
	over, at := t.d.over(*since, timeout)
	t.d.WakeAt(at)
	if !over {
		return false
	}
	if persisted := t.persisted(); persisted == nil || !since.Equal(persisted.AttemptStatus.PreparingSince) {
		t.d.Persist(plan.PersistNow)
		return false
	}
	if !t.d.podsListed {
		t.d.listsPods = true
		return false
	}
	t.taskBecomesDeletionPending(taskCompletion(frameworkv1.CodePodPreparingTimeout,
		fmt.Sprintf("The Pod did not run within %v: %s", timeout, waitingReason(pod))))
	return true
}
