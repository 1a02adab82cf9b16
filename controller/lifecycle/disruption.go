// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Reasons of the condition DisruptionTarget that have no constant in the API of Pods.
const (
	reasonTaintManager = "DeletionByTaintManager"
	reasonPodGC        = "DeletionByPodGC"
)

// Reasons of the status of Pods that a kubelet has ended.
const (
	podReasonPreempting = "Preempting"
	podReasonTerminated = "Terminated"
	podReasonShutdown   = "NodeShutdown"
	podReasonNodeLost   = "NodeLost"
	podReasonEvicted    = "Evicted"
)

// disruptionOf says why a Pod ends that does not fail by itself. It is empty if nothing
// tells. A kubelet has one reason of DisruptionTarget for all of its own; that of the Pod's
// status tells them apart.
func disruptionOf(pod *corev1.Pod) frameworkv1.Disruption {
	switch pod.Status.Reason {
	case podReasonPreempting:
		return frameworkv1.DisruptionPreempted
	case podReasonNodeLost, podReasonTerminated, podReasonShutdown:
		return frameworkv1.DisruptionNodeLost
	case podReasonEvicted:
		return frameworkv1.DisruptionEvicted
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.DisruptionTarget || condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Reason {
		case corev1.PodReasonPreemptionByScheduler:
			return frameworkv1.DisruptionPreempted
		case reasonTaintManager, reasonPodGC:
			return frameworkv1.DisruptionNodeLost
		default:
			return frameworkv1.DisruptionEvicted
		}
	}
	return ""
}
