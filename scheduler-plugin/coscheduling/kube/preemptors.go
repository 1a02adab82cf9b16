// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// untakenPause is how long after an attempt to preempt a Pod that may not be deleted the preemptor is retried. A Pod whose
// binding is given up is gone from the cache within milliseconds. A longer pause would leave the resources to others.
const untakenPause = 20 * time.Millisecond

// tellPreemptors hooks into kube-scheduler's own preemption, for three purposes:
//   - Gangs learn which Pods are preempted.
//   - The preemptor is tried again if a victim is gone before the preemptor could delete it: the gang was preempted or
//     dissolved, or the victim ended. kube-scheduler keeps a preemptor out of its queue until it has deleted the last
//     victim, and retries at that victim's end; if the victim ended earlier, the preemptor would wait for minutes
//     beside free room.
//   - Only the victim itself is deleted, and not its result (onlyPod).
func tellPreemptors(ctx context.Context, s *Scheduler, executor *preemption.Executor, handle fwk.Handle, gangs Gangs) {
	executor.PreemptPod = func(turn context.Context, candidate preemption.Candidate, by preemption.ExecutorPreemptor,
		victim *corev1.Pod, plugin string) (bool, error) {
		if !gangs.Take(victim) {
			// To report success would have the preemptor retried at once, again and again, until the scheduler sees what
			// has become of the victim.
			time.AfterFunc(untakenPause, func() { retryPreemptor(ctx, s, executor, by) })
			return false, nil
		}
		inMemory, err := executorFor(handle, victim).PreemptPod(turn, candidate, by, victim, plugin)
		if err != nil {
			gangs.Spare(victim)
		}
		hasEnded := errors.Is(err, ErrHasEnded)
		if hasEnded || IsRefusal(err) { // otherwise the deletion may be tried again, and the mark is right then
			go TakeBack(ctx, handle, victim)
		}
		if hasEnded {
			err = nil
		}
		if err == nil && !inMemory && isGone(victim, handle) {
			go retryPreemptor(ctx, s, executor, by)
		}
		return inMemory, err
	}
}

// retryPreemptor makes the queue retry a preemptor once its preemption is over; the queue would refuse the preemptor
// before.
func retryPreemptor(ctx context.Context, s *Scheduler, executor *preemption.Executor, by preemption.ExecutorPreemptor) {
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return !executor.IsPodRunningPreemption(by.UID()), nil
	})
	if err == nil { // otherwise the scheduler ends
		s.Activate(klog.FromContext(ctx), by.Pods())
	}
}

// isGone reports whether the scheduler has seen a Pod's end.
func isGone(pod *corev1.Pod, handle fwk.Handle) bool {
	live, err := handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	return err != nil || live.UID != pod.UID
}
