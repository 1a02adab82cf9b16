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

// Scheduler is a kube-scheduler with what the plugin uses of its inside: the queue,
// the cache, the snapshot and the extenders.
type Scheduler struct {
	sched    *scheduler.Scheduler
	snapshot *internalcache.Snapshot
}

// Of is a kube-scheduler as the plugin uses it. It comes before the scheduler's informers are
// started, and fails if its profiles do not share the snapshot of their scheduler.
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

// Profiles are the scheduler's profiles, by scheduler name.
func (s *Scheduler) Profiles() map[string]framework.Framework {
	return s.sched.Profiles
}

// Snapshot is the picture of the cluster that all profiles look at.
func (s *Scheduler) Snapshot() Snapshot {
	return s.snapshot
}

// UpdateSnapshot brings the snapshot up to date with the cache.
func (s *Scheduler) UpdateSnapshot(logger klog.Logger) error {
	return s.sched.Cache.UpdateSnapshot(logger, s.snapshot)
}

// Next hands out who is scheduled next, and waits until there is somebody. Nil, at
// shutdown, is nobody.
type Next func(klog.Logger) (framework.QueuedEntityInfo, error)

// InterceptNext has next decide who is scheduled next, and returns what decided before.
// It comes before the scheduler runs.
func (s *Scheduler) InterceptNext(next Next) (before Next) {
	before = s.sched.NextEntity
	s.sched.NextEntity = next
	return before
}

// Done tells the queue that the turn of a Pod that it has handed out is over.
func (s *Scheduler) Done(pod *corev1.Pod) {
	s.sched.SchedulingQueue.Done(pod.UID)
}

// Activate has Pods of the queue be tried again, by namespace and name.
func (s *Scheduler) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	s.sched.SchedulingQueue.Activate(logger, pods)
}

// Denominate takes back a Pod's nomination for a node, if it has one.
func (s *Scheduler) Denominate(pod *corev1.Pod) {
	s.sched.SchedulingQueue.DeleteNominatedPodIfExists(pod)
}

// RetryAll has all Pods of the queue be tried again.
func (s *Scheduler) RetryAll(logger klog.Logger) {
	s.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnschedulableTimeout, nil, nil, nil)
}

// waits says whether a Pod exists and is not bound, by the informer's store. That knows of a
// change before the queue is told of it.
func (s *Scheduler) waits(pod *corev1.Pod) bool {
	for _, profile := range s.sched.Profiles {
		live, err := profile.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
		return err == nil && live.UID == pod.UID && live.Spec.NodeName == ""
	}
	return false
}
