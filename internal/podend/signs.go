// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// causeOfReason maps the reason in the status of a Failed Pod to its cause. The reasons come from Kubernetes' source:
// pkg/kubelet/eviction, preemption, nodeshutdown, active_deadline.go, and NodeUnreachablePodReason of pkg/util/node.
var causeOfReason = map[string]Cause{
	"Evicted":          CauseEvicted,
	"Preempting":       CauseDisplaced,
	"Terminated":       CauseShutdown,
	"NodeShutdown":     CauseShutdown,
	"NodeLost":         CauseNodeLost,
	"DeadlineExceeded": CauseDeadline,
}

// reasonPodGC is the reason that the garbage collector of Pods, in kube-controller-manager, gives for a Pod without
// its Node.
const reasonPodGC = "DeletionByPodGC"

// causeOfDisruption returns what a reason of the condition DisruptionTarget means.
func causeOfDisruption(reason string) Cause {
	switch reason {
	case corev1.PodReasonPreemptionByScheduler:
		return CausePreempted
	case "DeletionByTaintManager", "DeletionByDeviceTaintManager":
		return CauseTainted
	case "EvictionByEvictionAPI":
		return CauseDrained
	case reasonPodGC:
		return CauseNodeLost
	case corev1.PodReasonTerminationByKubelet:
		return CauseEvicted // Its status.reason would say if it were another.
	default:
		return CauseDisrupted
	}
}

// isFinal reports whether the component that writes this reason into DisruptionTarget ends the Pod by the same write.
// Other components write the condition first, and delete the Pod afterwards.
func isFinal(reason string) bool {
	return reason == corev1.PodReasonTerminationByKubelet || reason == reasonPodGC
}

// disruption returns the condition DisruptionTarget of a Pod, if it is True.
func disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// refusals are the reasons with which a kubelet refuses to run a Pod: admissionRejectionReasons of
// pkg/kubelet/kubelet.go, and the names of the scheduler's filters, which the kubelet runs again.
var refusals = map[string]bool{
	"AppArmor": true, "PodOSSelectorNodeLabelDoesNotMatch": true, "PodOSNotSupported": true, "InvalidNodeInfo": true,
	"InitContainerRestartPolicyForbidden": true, "SupplementalGroupsPolicyNotSupported": true,
	"UnexpectedAdmissionError": true, "UnknownReason": true, "UnexpectedPredicateFailureType": true,
	"PodLevelResourcesNotSupported": true, "PodFeatureUnsupported": true, "SysctlForbidden": true, "Forbidden": true,
	"TopologyAffinityError": true, "VolumeAttachmentLimitExceeded": true, "EmptyPodSharedPoolError": true,
	"NodeAffinity": true, "NodeName": true, "NodePorts": true, "TaintToleration": true,
	"node(s) had taints that the pod didn't tolerate": true,
}

// isRefusal reports whether a kubelet refused to start a Pod: status.reason is a known refusal, or the Pod has any
// reason and no container has started. The caller has handled other known reasons before.
func isRefusal(pod *corev1.Pod) bool {
	reason := pod.Status.Reason
	return reason != "" && (refusals[reason] || strings.HasPrefix(reason, "OutOf") || !hasStarted(pod))
}

// DisruptedAt returns when the condition DisruptionTarget of a Pod became True; zero if the condition is not True.
func DisruptedAt(pod *corev1.Pod) time.Time {
	if said := disruption(pod); said != nil {
		return said.LastTransitionTime.Time
	}
	return time.Time{}
}

// IsAboutToBeDeleted reports whether a Pod is Failed and a component outside its node is about to delete it: the
// garbage collector of Pods, a scheduler, the taint manager or the eviction API. The component sends the deletion once,
// after it has made the Pod Failed. If the deletion fails, the Pod may stay.
func IsAboutToBeDeleted(pod *corev1.Pod) bool {
	said := disruption(pod)
	return pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil &&
		said != nil && said.Reason != corev1.PodReasonTerminationByKubelet
}
