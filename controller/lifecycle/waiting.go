// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// A task whose Pod does not run has a wait in the status, with the reason from the Pod's status. Pods repeat reasons
// with each try of their node, and alternate between some: ErrImagePull, ImagePullBackOff, ErrImagePull. To avoid a
// write for each change:
//
//   - A reason is recorded only when the task has been preparing for waitingGrace; by then most Pods run.
//   - A recorded reason stays for at least waitingHold, or until the task stops preparing.
//
// So n minutes of waiting change a task at most n+1 times. The changes of all tasks of a Framework are written
// together, since no action waits for them.
const (
	waitingGrace = 10 * time.Second
	waitingHold  = time.Minute
)

// Bounds of messages about waits: the bytes of a reason, and the number of reasons that are counted separately.
const (
	maxWaitingReason  = 64
	maxWaitingReasons = 8
)

// Reasons to wait where a Pod's status has none.
const (
	// reasonNotYetStarted: the Pod has a node, which has not said anything yet.
	reasonNotYetStarted = "NotYetStarted"
)

// followWaiting notes for what a task waits that is preparing.
func (t cursor) followWaiting(pod *corev1.Pod) {
	task := t.status()
	known := task.AttemptStatus.Waiting
	next := frameworkv1.TaskWaiting{Reason: waitingReason(pod), Since: t.d.now}
	begun, span := task.TransitionTime, waitingGrace
	switch {
	case known == nil:
		next.Since = task.TransitionTime
	case known.Reason == next.Reason:
		return
	default:
		begun, span = known.Since, waitingHold
	}
	over, at := t.d.over(begun, span)
	t.d.WakeAt(at)
	if over {
		t.edit().AttemptStatus.Waiting = &next
	}
}

// waitingReason returns why a Pod waits, from its first container with a problem. It is no problem if containers are
// being created, or wait for init containers.
func waitingReason(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason != "" {
				return cleanReason(condition.Reason)
			}
		}
		return reasonNotYetScheduled
	}
	reason := reasonNotYetStarted
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason == "" {
			continue
		}
		reason = cleanReason(waiting.Reason)
		if reason != "ContainerCreating" && reason != "PodInitializing" {
			break
		}
	}
	return reason
}

// cleanReason returns a reason that another client has written, as a short word.
func cleanReason(reason string) string {
	reason = schedulingv1alpha1.CleanReason(reason)
	return reason[:min(len(reason), maxWaitingReason)]
}

// countWaiting counts, by reason, the tasks that wait and are not to end.
func countWaiting(roles []*frameworkv1.TaskRoleStatus) []frameworkv1.WaitingCount {
	byReason := map[string]frameworkv1.WaitingCount{}
	for _, role := range roles {
		for _, task := range role.TaskStatuses {
			waiting := task.AttemptStatus.Waiting
			if waiting == nil || task.AttemptStatus.CompletionStatus != nil {
				continue
			}
			byReason[waiting.Reason] = withCount(byReason[waiting.Reason],
				frameworkv1.WaitingCount{Reason: waiting.Reason, Tasks: 1, Since: waiting.Since})
		}
	}
	if len(byReason) == 0 {
		return nil
	}
	counts := slices.SortedFunc(maps.Values(byReason), func(a, b frameworkv1.WaitingCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	if len(counts) <= maxWaitingReasons {
		return counts
	}
	var others frameworkv1.WaitingCount
	for _, count := range counts[maxWaitingReasons:] {
		count.Reason = frameworkv1.ReasonOther
		others = withCount(others, count)
	}
	return append(counts[:maxWaitingReasons], others)
}

// withCount adds a count to others of the same reason. There may be none.
func withCount(sum, count frameworkv1.WaitingCount) frameworkv1.WaitingCount {
	count.Tasks += sum.Tasks
	if sum.Tasks > 0 && sum.Since.Before(&count.Since) {
		count.Since = sum.Since
	}
	return count
}
