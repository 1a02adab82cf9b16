// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Kind is the kind of the container in the Pod.
type Kind string

// Kinds of containers.
const (
	// App: one of spec.containers.
	App Kind = "container"
	// Init: one of spec.initContainers that ends before the others start.
	Init Kind = "init container"
	// Sidecar is an init container with restartPolicy Always. Its exit code decides nothing, because the kubelet ends
	// it after the other containers.
	Sidecar Kind = "sidecar"
)

var causeOfContainer = map[Kind]Cause{App: CauseProgram, Init: CauseInitContainer, Sidecar: CauseSidecar}

// reasonStatusUnknown is the reason that the kubelet gives for a container whose end it has not seen. The exit code is
// then 137, whatever the true one was (ContainerReasonStatusUnknown of pkg/kubelet/container).
const reasonStatusUnknown = "ContainerStatusUnknown"

// Container is a container that has failed.
type Container struct {
	Kind Kind
	Name string
	// Terminated is its end.
	corev1.ContainerStateTerminated
}

// String says in a few words how the container ended, such as "container main exited with code 1 (OOMKilled)".
func (c Container) String() string {
	why := ""
	switch c.Reason {
	case "", "Error", "Completed":
	default:
		why = fmt.Sprintf(" (%s)", c.Reason)
	}
	return fmt.Sprintf("%s %s exited with code %d%s", c.Kind, c.Name, c.ExitCode, why)
}

// eachStatus visits the containers of a Pod: all init containers, then the others.
func eachStatus(pod *corev1.Pod, visit func(Kind, *corev1.ContainerStatus)) {
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		visit(kindOfInit(pod, status.Name), status)
	}
	for i := range pod.Status.ContainerStatuses {
		visit(App, &pod.Status.ContainerStatuses[i])
	}
}

// isSidecarSpec reports whether a container of spec.initContainers is a sidecar.
func isSidecarSpec(container *corev1.Container) bool {
	return ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// KeepSidecars returns a Pod's sidecars, each with only its name and restartPolicy. This is all of the spec that the
// function Of needs.
func KeepSidecars(pod *corev1.Pod) []corev1.Container {
	var kept []corev1.Container
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; isSidecarSpec(container) {
			kept = append(kept, corev1.Container{Name: container.Name, RestartPolicy: container.RestartPolicy})
		}
	}
	return kept
}

func kindOfInit(pod *corev1.Pod, name string) Kind {
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; container.Name == name && isSidecarSpec(container) {
			return Sidecar
		}
	}
	return Init
}

// decidingFailure returns the failed container that decides. If the container named `main` failed, that container
// decides. Otherwise the container that failed last decides, or the first of several that failed in the same second. A
// sidecar decides only if no other container failed.
func decidingFailure(pod *corev1.Pod, main string) *Container {
	rank := func(kind Kind, name string) int {
		switch {
		case kind == Sidecar:
			return 0
		case kind == App && name == main:
			return 2
		default:
			return 1
		}
	}
	var decides *Container
	eachStatus(pod, func(kind Kind, status *corev1.ContainerStatus) {
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			return
		}
		if decides != nil {
			before := cmp.Or(cmp.Compare(rank(decides.Kind, decides.Name), rank(kind, status.Name)), decides.FinishedAt.Compare(ended.FinishedAt.Time))
			if before >= 0 {
				return
			}
		}
		decides = &Container{Kind: kind, Name: status.Name, ContainerStateTerminated: *ended}
	})
	return decides
}

// Deciding returns the statuses of the containers that decide about the Pod by their exit codes: init containers first,
// then the others, without sidecars.
func Deciding(pod *corev1.Pod) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	eachStatus(pod, func(kind Kind, status *corev1.ContainerStatus) {
		if kind != Sidecar {
			statuses = append(statuses, *status)
		}
	})
	return statuses
}

// hasStarted reports whether any container of a Pod has ever been started.
func hasStarted(pod *corev1.Pod) bool {
	started := false
	eachStatus(pod, func(_ Kind, status *corev1.ContainerStatus) {
		started = started || status.State.Running != nil || status.State.Terminated != nil ||
			status.LastTerminationState.Terminated != nil || status.RestartCount > 0
	})
	return started
}
