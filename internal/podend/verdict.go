// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Cause says what ended a Pod.
type Cause string

// Causes of the end of a Pod.
const (
	// CauseNone: the Pod has not ended, and is not being deleted.
	CauseNone Cause = ""
	// CauseProgram: the containers ended by themselves, with whatever exit codes.
	CauseProgram Cause = "Program"
	// CauseInitContainer: an init container failed, so that the program was never started.
	CauseInitContainer Cause = "InitContainer"
	// CauseSidecar: a sidecar has failed, and no other container has. (A sidecar is an init container with
	// restartPolicy Always.)
	CauseSidecar Cause = "Sidecar"
	// CauseDeadline: the Pod ran for longer than spec.activeDeadlineSeconds of the Pod.
	CauseDeadline Cause = "Deadline"

	// CauseEvicted: the kubelet evicted the Pod, because the node ran short of something or
	// the Pod used more storage than its limit.
	CauseEvicted Cause = "Evicted"
	// CauseShutdown: the node shut down, and its kubelet ended the Pod or did not start the Pod.
	CauseShutdown Cause = "NodeShutdown"
	// CauseDisplaced: the kubelet ended the Pod to make room for a critical Pod.
	CauseDisplaced Cause = "Displaced"
	// CauseRefused: the kubelet refused to start the Pod after the scheduler had placed it.
	CauseRefused Cause = "Refused"
	// CausePreempted: a scheduler deletes the Pod to make room for a Pod of a higher priority.
	CausePreempted Cause = "Preempted"
	// CauseTainted: the node, or a device of the Pod, got a taint that the Pod does not tolerate.
	CauseTainted Cause = "Tainted"
	// CauseDrained: a client evicted the Pod through the eviction API, as kubectl drain does.
	CauseDrained Cause = "Drained"
	// CauseNodeLost: the Node object is gone, or its kubelet does not answer.
	CauseNodeLost Cause = "NodeLost"
	// CauseDisrupted: the condition DisruptionTarget has a reason that Kubernetes itself
	// does not write.
	CauseDisrupted Cause = "Disrupted"

	// CauseDeleted: a client deletes the Pod, and nothing says why.
	CauseDeleted Cause = "Deleted"
	// CauseUnknown: the Pod is Failed, no container has failed, and nothing says why.
	CauseUnknown Cause = "Unknown"
)

// Verdict is how a Pod ended, or is about to end.
type Verdict struct {
	Cause Cause
	// Certain is false if the end could also have another cause: a disruption was announced, but the Pod ended before
	// it; the kubelet does not know how a container ended; or nothing says why the Pod is Failed or deleted.
	Certain bool
	// Container is the container that decides, usually the one that failed last; see OfMain. Nil if no container is
	// known to have failed.
	Container *Container
	// Reason and Message are Kubernetes' own words about the end, from the Pod's status, or else from its condition
	// DisruptionTarget. Empty if there are none.
	Reason, Message string
}

// Of returns the verdict on a Pod. A Pod counts as deleted from the request for its deletion on, even if it succeeds
// before it is gone, because many programs exit with 0 when they are asked to end.
func Of(pod *corev1.Pod) Verdict { return OfMain(pod, "") }

// OfMain returns the verdict on a Pod with one main container. If that container has failed, its exit code counts,
// even if another container failed later.
func OfMain(pod *corev1.Pod, main string) Verdict {
	deleted := pod.DeletionTimestamp != nil
	switch {
	case pod.Status.Phase == corev1.PodSucceeded && !deleted:
		return Verdict{Cause: CauseProgram, Certain: true}
	case pod.Status.Phase != corev1.PodFailed && !deleted:
		return Verdict{}
	}
	v := Verdict{Container: decidingFailure(pod, main), Reason: pod.Status.Reason, Message: pod.Status.Message}
	said := disruption(pod)
	switch {
	case causeOfReason[pod.Status.Reason] != "":
		v.Cause, v.Certain = causeOfReason[pod.Status.Reason], true
	case said != nil:
		v.Cause, v.Certain = causeOfDisruption(said.Reason), deleted || isFinal(said.Reason)
		if v.Reason == "" {
			v.Reason, v.Message = said.Reason, said.Message
		}
	case deleted:
		v.Cause = CauseDeleted
	case isRefusal(pod):
		v.Cause, v.Certain = CauseRefused, true
	case v.Container == nil:
		v.Cause = CauseUnknown
	default:
		v.Cause, v.Certain = causeOfContainer[v.Container.Kind], v.Container.Reason != reasonStatusUnknown
	}
	return v
}

// ByCluster reports whether something outside the Pod ended it, except for its own deadline and a plain deletion. Such
// an end says nothing about the program, even if there is an exit code.
func (v Verdict) ByCluster() bool {
	switch v.Cause {
	case CauseEvicted, CauseShutdown, CauseDisplaced, CauseRefused, CausePreempted, CauseTainted, CauseDrained,
		CauseNodeLost, CauseDisrupted:
		return true
	}
	return false
}

// Succeeded reports whether the program ended well.
func (v Verdict) Succeeded() bool { return v.Cause == CauseProgram && v.Container == nil }

// ExitCode returns the exit code of the container that decides; false if no container is known to have failed. The code
// means nothing if the cluster ended the Pod.
func (v Verdict) ExitCode() (int32, bool) {
	if v.Container == nil {
		return 0, false
	}
	return v.Container.ExitCode, true
}

// String says in a few words what happened, to follow the Pod's name: "failed: container main exited with code 1", "was
// preempted". It is "" if nothing has ended the Pod.
func (v Verdict) String() string {
	said := cmp.Or(v.Message, v.Reason)
	switch v.Cause {
	case CauseNone:
		return ""
	case CauseProgram, CauseInitContainer, CauseSidecar:
		if v.Container == nil {
			return "succeeded"
		}
		return "failed: " + v.Container.String()
	case CauseUnknown:
		return withDetail("failed, and no container did", said)
	case CauseDeleted:
		return withDetail("was deleted", said)
	case CauseDeadline:
		return "ran for longer than its activeDeadlineSeconds"
	case CauseEvicted:
		return withDetail("was evicted by its kubelet", said)
	case CauseShutdown:
		return withDetail("ended because its node shut down", said)
	case CauseDisplaced:
		return withDetail("was ended by its kubelet to make room for a critical Pod", said)
	case CauseRefused:
		return withDetail("was refused by its kubelet", strings.TrimSuffix(v.Reason+": "+v.Message, ": "))
	case CausePreempted:
		return withDetail("was preempted", said)
	case CauseTainted:
		return withDetail("was deleted because of a taint that it does not tolerate", said)
	case CauseDrained:
		return withDetail("was evicted through the eviction API, as a drain does", said)
	case CauseNodeLost:
		return withDetail("was lost with its node", said)
	default:
		return withDetail("was disrupted", said)
	}
}

func withDetail(what, detail string) string {
	if detail == "" {
		return what
	}
	return fmt.Sprintf("%s: %s", what, detail)
}
