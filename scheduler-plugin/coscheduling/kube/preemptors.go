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

// untakenPause is how long to wait before a preemptor is retried if its victim need not be deleted, that is, if
// Gangs.Take returned false. Such a victim is not bound, and leaves the cache within milliseconds. After a longer
// pause, other Pods might have taken the room.
const untakenPause = 20 * time.Millisecond

// tellPreemptors hooks into kube-scheduler's own preemption, for three purposes:
//   - Gangs learns which Pods are preempted.
//   - A preemptor is tried again if a victim is gone before the preemptor could delete it: the victim ended, or its gang
//     was evicted. kube-scheduler would try the preemptor again only at the end of the last victim that the preemptor
//     has deleted. If that victim has ended earlier, the preemptor would wait for minutes beside free room.
//   - Only the victim itself is deleted, not another Pod with its name, and only if it has not ended (onlyPod).
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

// retryPreemptor waits until a preemptor's preemption is over, and then makes the queue retry the preemptor. Before
// that, the queue would refuse it.
func retryPreemptor(ctx context.Context, s *Scheduler, executor *preemption.Executor, by preemption.ExecutorPreemptor) {
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return !executor.IsPodRunningPreemption(by.UID()), nil
	})
	if err == nil { // otherwise the scheduler ends
		s.sched.SchedulingQueue.Activate(klog.FromContext(ctx), by.Pods())
	}
}

// isGone reports whether the scheduler has seen a Pod's end.
func isGone(pod *corev1.Pod, handle fwk.Handle) bool {
	live, err := handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	return err != nil || live.UID != pod.UID
}
