// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podways

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// Results of an end for training jobs.
var (
	byProgram = Kubeflow{Never: Fails, OnFailure: Again, ExitCode: Fails, Counts: true}
	bySignal  = Kubeflow{Never: Fails, OnFailure: Again, ExitCode: Again, Counts: true}
	onNode    = Kubeflow{Never: Fails, OnFailure: Again, ExitCode: Again, Counts: true}
	byNode    = Kubeflow{Never: Fails, OnFailure: Again, ExitCode: Again}
	deleted   = Kubeflow{Never: Again, OnFailure: Again, ExitCode: Again}
)

// lost returns the result of an end by the cluster for a Framework.
func lost(disruption string) Framework {
	return Framework{Code: -101, Unlisted: -101, Type: "Transient", Disruption: disruption}
}

// listed returns the result of an end by the cluster if the shipped podFailureSpec has a completion code for the Pod's
// reason.
func listed(code int32, kind, disruption string) Framework {
	return Framework{Code: code, Unlisted: -101, Type: kind, Disruption: disruption}
}

const shutdownMessage = "Pod was terminated in response to imminent node shutdown."

// Ways returns all of them.
func Ways() []Way {
	return slices.Concat(byItself(), byKubelet(), refused(), byOthers())
}

// byItself are ends of containers of the Pod.
func byItself() []Way {
	return []Way{
		{
			Name: "exits with 0", Source: "pkg/kubelet: getPhase",
			End:   func(e Ending) { e.Pod.Status.Phase = corev1.PodSucceeded; e.exit(0, "Completed") },
			Cause: podend.CauseProgram, Framework: Framework{},
			Kubeflow: Kubeflow{Never: Succeeds, OnFailure: Succeeds, ExitCode: Succeeds},
		},
		{
			Name: "exits with 1", Source: "pkg/kubelet: getPhase",
			End:   func(e Ending) { e.fail("", ""); e.exit(1, "Error") },
			Cause: podend.CauseProgram, Framework: Framework{Code: 1, Unlisted: 1}, Volcano: PodFailed, Kubeflow: byProgram,
		},
		{
			Name: "exits with 143, by a signal", Source: "pkg/kubelet: getPhase",
			End:   func(e Ending) { e.fail("", ""); e.exit(143, "Error") },
			Cause: podend.CauseProgram, Framework: Framework{Code: 143, Unlisted: 143, Type: "Transient"}, Volcano: PodFailed, Kubeflow: bySignal,
		},
		{
			Name: "uses more memory than its limit", Source: "pkg/kubelet/kuberuntime: OOMKilled",
			End:   func(e Ending) { e.fail("", ""); e.exit(137, "OOMKilled") },
			Cause: podend.CauseProgram, Framework: Framework{Code: -1200, Unlisted: 137, Type: "Permanent"}, Volcano: PodFailed, Kubeflow: bySignal,
		},
		{
			Name: "an init container exits with 1", Source: "pkg/kubelet: getPhase",
			End: func(e Ending) {
				e.fail("", "")
				e.Pod.Status.ContainerStatuses = nil
				if len(e.Pod.Spec.InitContainers) == 0 {
					e.Pod.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "example.com/x:1"}}
				}
				e.Pod.Status.InitContainerStatuses = e.statuses(e.Pod.Spec.InitContainers, 1, "Error")
			},
			Cause: podend.CauseInitContainer, Framework: Framework{Code: 1, Unlisted: 1}, Volcano: PodFailed, Kubeflow: byProgram,
		},
		{
			Name: "exits with 1, and its sidecar with 143 after it", Source: "pkg/kubelet/kuberuntime: sidecars end last",
			End: func(e Ending) {
				e.fail("", "")
				always := corev1.Container{Name: "proxy", Image: "example.com/x:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
				e.Pod.Spec.InitContainers = append(e.Pod.Spec.InitContainers, always)
				e.exit(1, "Error")
				later := Ending{e.Pod, e.At}
				later.At.Time = later.At.Add(1e9)
				all := e.Pod.Status.InitContainerStatuses
				all[len(all)-1] = later.statuses([]corev1.Container{always}, 143, "Error")[0]
			},
			Cause: podend.CauseProgram, Framework: Framework{Code: 1, Unlisted: 1}, Volcano: PodFailed, Kubeflow: byProgram,
		},
		{
			Name: "exits with 0, and another of its containers with 137", Source: "pkg/kubelet: getPhase",
			End: func(e Ending) {
				e.fail("", "")
				e.exit(0, "Completed")
				other := corev1.Container{Name: "proxy", Image: "example.com/x:1"}
				e.Pod.Spec.Containers = append(e.Pod.Spec.Containers, other)
				e.Pod.Status.ContainerStatuses = append(e.Pod.Status.ContainerStatuses, e.statuses([]corev1.Container{other}, 137, "Error")...)
			},
			Cause: podend.CauseProgram, Framework: Framework{Code: 137, Unlisted: 137, Type: "Transient"}, Volcano: PodFailed, Kubeflow: bySignal,
		},
		{
			Name: "ends while its kubelet is down, which finds no trace of the container", Source: "pkg/kubelet/container: ContainerStatusUnknown",
			End:   func(e Ending) { e.fail("", ""); e.exit(137, "ContainerStatusUnknown") },
			Cause: podend.CauseProgram, Uncertain: true, Framework: Framework{Code: 137, Unlisted: 137, Type: "Transient"}, Volcano: PodFailed, Kubeflow: bySignal,
		},
		{
			Name: "runs for longer than the Pod's activeDeadlineSeconds", Source: "pkg/kubelet/active_deadline.go",
			End: func(e Ending) {
				e.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
				e.exit(143, "Error")
			},
			Cause: podend.CauseDeadline, Framework: Framework{Code: -1004, Unlisted: 143, Type: "Permanent"}, Volcano: PodFailed, Kubeflow: byProgram,
		},
		{
			Name: "is Failed, and nothing says why", Source: "a client that writes the status",
			End:   func(e Ending) { e.fail("", ""); e.exit(0, "Completed") },
			Cause: podend.CauseUnknown, Uncertain: true, Framework: Framework{Code: -300, Unlisted: -300}, Volcano: PodFailed, Kubeflow: bySignal,
		},
	}
}

// byKubelet are ends of running Pods by their kubelet.
func byKubelet() []Way {
	byKubelet := func(reason, message string, code int32) func(Ending) {
		return func(e Ending) {
			e.fail(reason, message)
			e.disrupt(corev1.PodReasonTerminationByKubelet, message)
			if code < 0 {
				e.Pod.Status.ContainerStatuses = nil
				return
			}
			e.exit(code, "Error")
		}
	}
	const short = "The node was low on resource: memory."
	return []Way{
		{
			Name: "is evicted by its kubelet, and exits with 1", Source: "pkg/kubelet/eviction", End: byKubelet("Evicted", short, 1),
			Cause: podend.CauseEvicted, Framework: listed(-1000, "Transient", "Evicted"), Volcano: PodEvicted, Kubeflow: onNode,
		},
		{
			Name: "is evicted by its kubelet, and exits with 0", Source: "pkg/kubelet/eviction", End: byKubelet("Evicted", short, 0),
			Cause: podend.CauseEvicted, Framework: listed(-1000, "Transient", "Evicted"), Volcano: PodEvicted, Kubeflow: onNode,
		},
		{
			Name: "is evicted by its kubelet before it starts", Source: "pkg/kubelet/eviction", End: byKubelet("Evicted", short, -1),
			Cause: podend.CauseEvicted, Framework: listed(-1000, "Transient", "Evicted"), Volcano: PodEvicted, Kubeflow: onNode,
		},
		{
			Name: "has to make room for a critical Pod on its node", Source: "pkg/kubelet/preemption",
			End:   byKubelet("Preempting", "Preempted in order to admit critical pod", 137),
			Cause: podend.CauseDisplaced, Framework: listed(-1003, "Transient", "Preempted"), Volcano: PodEvicted, Kubeflow: byNode,
		},
		{
			Name: "its node shuts down, and it exits with 1", Source: "pkg/kubelet/nodeshutdown", End: byKubelet("Terminated", shutdownMessage, 1),
			Cause: podend.CauseShutdown, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: byNode,
		},
		{
			Name: "its node shuts down, and it exits with 0", Source: "pkg/kubelet/nodeshutdown", End: byKubelet("Terminated", shutdownMessage, 0),
			Cause: podend.CauseShutdown, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: byNode,
		},
	}
}

// refused are Pods that a kubelet did not admit.
func refused() []Way {
	refusal := func(reason string, framework Framework) Way {
		return Way{
			Name: "is refused by its kubelet: " + reason, Source: "pkg/kubelet: rejectPod",
			End:   func(e Ending) { e.refuse(reason, "see the node") },
			Cause: podend.CauseRefused, Framework: framework, Volcano: PodEvicted, Kubeflow: onNode,
		}
	}
	ways := []Way{{
		Name: "is refused because its node shuts down", Source: "pkg/kubelet/nodeshutdown",
		End:   func(e Ending) { e.refuse("NodeShutdown", shutdownMessage) },
		Cause: podend.CauseShutdown, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: byNode,
	}}
	for _, reason := range []string{"OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "OutOfexample.com/gpu"} {
		ways = append(ways, refusal(reason, listed(-1002, "Transient", "Refused")))
	}
	for _, reason := range []string{"UnexpectedAdmissionError", "UnknownReason", "InvalidNodeInfo", "UnexpectedPredicateFailureType"} {
		ways = append(ways, refusal(reason, listed(-1006, "Transient", "Refused")))
	}
	for _, reason := range []string{
		"NodeAffinity", "NodeName", "NodePorts", "TopologyAffinityError", "node(s) had taints that the pod didn't tolerate",
		"VolumeAttachmentLimitExceeded", "EmptyPodSharedPoolError", "AppArmor", "SysctlForbidden", "PodOSNotSupported",
		"PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "PodLevelResourcesNotSupported",
		"PodFeatureUnsupported", "InitContainerRestartPolicyForbidden", "AReasonOfALaterKubelet",
	} {
		ways = append(ways, refusal(reason, lost("Refused")))
	}
	return ways
}

// byOthers are ends by what is outside of the node.
func byOthers() []Way {
	deletion := func(reason, message string, more func(Ending)) func(Ending) {
		return func(e Ending) {
			if reason != "" {
				e.disrupt(reason, message)
			}
			e.delete()
			if more != nil {
				more(e)
			}
		}
	}
	const drain = "Eviction API: evicting"
	exits := func(code int32) func(Ending) {
		return func(e Ending) {
			e.exit(code, "Error")
			e.Pod.Status.Phase = corev1.PodFailed
			if code == 0 {
				e.Pod.Status.Phase = corev1.PodSucceeded
			}
		}
	}
	return []Way{
		{
			Name: "its Node is deleted", Source: "pkg/controller/podgc: markFailedAndDeletePodWithCondition",
			End: func(e Ending) {
				e.fail("", "")
				e.disrupt("DeletionByPodGC", "PodGC: node no longer exists")
			},
			Cause: podend.CauseNodeLost, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node does not answer, or gets another taint that it does not tolerate", Source: "pkg/controller/tainteviction",
			End:   deletion("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", nil),
			Cause: podend.CauseTainted, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "a device of its node gets a taint that it does not tolerate", Source: "pkg/controller/devicetainteviction",
			End:   deletion("DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint", nil),
			Cause: podend.CauseTainted, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node does not answer while it is deleted", Source: "pkg/controller/util/node: SetPodTerminationReason",
			End:   deletion("", "", func(e Ending) { e.Pod.Status.Reason = "NodeLost" }),
			Cause: podend.CauseNodeLost, Framework: lost("NodeLost"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node is drained", Source: "pkg/registry/core/pod/storage/eviction.go", End: deletion("EvictionByEvictionAPI", drain, nil),
			Cause: podend.CauseDrained, Framework: lost("Evicted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node is drained, and it exits with 0", Source: "pkg/registry/core/pod/storage/eviction.go", End: deletion("EvictionByEvictionAPI", drain, exits(0)),
			Cause: podend.CauseDrained, Framework: lost("Evicted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node is drained, and it exits with 1", Source: "pkg/registry/core/pod/storage/eviction.go", End: deletion("EvictionByEvictionAPI", drain, exits(1)),
			Cause: podend.CauseDrained, Framework: lost("Evicted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "is preempted by a scheduler", Source: "pkg/scheduler/framework/preemption",
			End:   deletion("PreemptionByScheduler", "preempting to accommodate a higher priority pod", nil),
			Cause: podend.CausePreempted, Framework: lost("Preempted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "exits with 143 after a scheduler announced its preemption, and before it is deleted", Source: "pkg/scheduler/framework/preemption",
			End: func(e Ending) {
				e.disrupt("PreemptionByScheduler", "preempting to accommodate a higher priority pod")
				exits(143)(e)
			},
			Cause: podend.CausePreempted, Uncertain: true, Framework: lost("Preempted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "another program of the cluster disrupts it", Source: "a reason of DisruptionTarget that Kubernetes does not write",
			End:   deletion("Rebalancing", "moved to another rack", nil),
			Cause: podend.CauseDisrupted, Framework: lost("Evicted"), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "somebody deletes it", Source: "the API server", End: deletion("", "", nil),
			Cause: podend.CauseDeleted, Uncertain: true, Framework: lost(""), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "somebody deletes it, and it exits with 0", Source: "the API server", End: deletion("", "", exits(0)),
			Cause: podend.CauseDeleted, Uncertain: true, Framework: lost(""), Volcano: PodEvicted, Kubeflow: deleted,
		},
		{
			Name: "its node is marked out of service while it is deleted", Source: "pkg/controller/podgc: gcTerminating",
			End:   deletion("", "", func(e Ending) { e.fail("", "") }),
			Cause: podend.CauseDeleted, Uncertain: true, Framework: lost(""), Volcano: PodEvicted, Kubeflow: deleted,
		},
	}
}
