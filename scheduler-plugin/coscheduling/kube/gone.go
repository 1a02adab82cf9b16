// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ForgetGone frees the room of a deleted Pod that is still assumed on a node. Usually kube-scheduler does so when it
// observes the deletion. After a broken watch it may miss the deletion: if it never saw the Pod, or if another Pod has
// taken the name since. Nothing else removes a Pod that is assumed and bound from the cache. Mirrors
// handleAssumedPodDeletion.
func ForgetGone(s *Scheduler, logger klog.Logger, pod *corev1.Pod) {
	if assumed, err := s.sched.Cache.IsAssumedPod(pod); err != nil || !assumed {
		return
	}
	known, err := s.sched.Cache.GetPod(pod) // the cached Pod names the node
	if err != nil {
		return
	}
	for _, profile := range s.sched.Profiles {
		if profile.RejectWaitingPod(pod.UID) {
			return // its binding will fail, which forgets the Pod
		}
	}
	if err := s.sched.Cache.RemoveAssumedPod(logger, known); err != nil {
		logger.V(2).Info("Pod that is gone was not assumed", "pod", klog.KObj(pod), "reason", err.Error())
	}
	s.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, known, nil, nil)
}
