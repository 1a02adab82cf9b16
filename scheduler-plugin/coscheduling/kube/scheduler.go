// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Scheduler is a kube-scheduler, with access to the internal parts that the plugin uses: the queue, the cache, the
// snapshot and the extenders.
type Scheduler struct {
	sched    *scheduler.Scheduler
	snapshot *internalcache.Snapshot
}

// Of returns a Scheduler for a kube-scheduler. Call it before the informers are started. It returns an error if not all
// profiles share the scheduler's snapshot.
func Of(sched *scheduler.Scheduler) (*Scheduler, error) {
	s := &Scheduler{sched: sched}
	for name, profile := range sched.Profiles {
		snapshot, ok := profile.SnapshotSharedLister().(*internalcache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("profile %s has a %T and not the scheduler's own snapshot", name, profile.SnapshotSharedLister())
		}
		if s.snapshot != nil && s.snapshot != snapshot {
			return nil, fmt.Errorf("profile %s does not share its snapshot with the others", name)
		}
		s.snapshot = snapshot
	}
	if err := indexClaims(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Profiles returns the scheduler's profiles, by scheduler name.
func (s *Scheduler) Profiles() map[string]framework.Framework {
	return s.sched.Profiles
}

// Snapshot returns the picture of the cluster that all profiles use.
func (s *Scheduler) Snapshot() Snapshot {
	return s.snapshot
}

// UpdateSnapshot brings the snapshot up to date with the cache.
func (s *Scheduler) UpdateSnapshot(logger klog.Logger) error {
	return s.sched.Cache.UpdateSnapshot(logger, s.snapshot)
}

// Next waits for the next Pod to schedule and returns it, nil at shutdown.
type Next func(klog.Logger) (framework.QueuedEntityInfo, error)

// InterceptNext replaces the function with which the scheduler gets the next Pod, and returns the original function.
// Call it before the scheduler runs.
func (s *Scheduler) InterceptNext(next Next) (before Next) {
	before = s.sched.NextEntity
	s.sched.NextEntity = next
	return before
}

// Done reports to the queue that the scheduling cycle of a Pod is over.
func (s *Scheduler) Done(pod *corev1.Pod) {
	s.sched.SchedulingQueue.Done(pod.UID)
}

// Denominate removes a Pod's nomination for a node, if any.
func (s *Scheduler) Denominate(pod *corev1.Pod) {
	s.sched.SchedulingQueue.DeleteNominatedPodIfExists(pod)
}

// RetryAll makes the scheduler retry all Pods of the queue.
func (s *Scheduler) RetryAll(logger klog.Logger) {
	s.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnschedulableTimeout, nil, nil, nil)
}

// waits reports whether a Pod exists and is not bound, according to the informer's store. The store has each change
// before the queue is notified of it.
func (s *Scheduler) waits(pod *corev1.Pod) bool {
	for _, profile := range s.sched.Profiles {
		live, err := profile.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
		return err == nil && live.UID == pod.UID && live.Spec.NodeName == ""
	}
	return false
}
