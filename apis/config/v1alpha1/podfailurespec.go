// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// anything fits any text, over several lines too. A regex is not needed to fit,
// but only what one fits is recorded in the diagnostics.
const anything = "(?ms).*"

// DefaultPodFailureSpec is the classification of failed Pods that applies unless
// the configuration has one. Codes, phrases and patterns are those that
// FrameworkController ships, in its order, which matters: the first that fits
// counts. So an eviction is told from what the containers did, and a container
// out of memory from one that was killed.
func DefaultPodFailureSpec() []CompletionCodeInfo {
	const (
		transient = frameworkv1.AttributeTransient
		permanent = frameworkv1.AttributePermanent
	)
	return []CompletionCodeInfo{
		// -1000 to -1199: what the kubelet or the control plane did to the Pod.
		failure(-1000, "PodEvicted", transient, podReason("Evicted")),
		failure(-1001, "PodNodeLost", transient, podReason("NodeLost")),
		failure(-1002, "PodScheduledToInsufficientResourceNode", transient, podReason(`OutOf\S+`)),
		failure(-1003, "PodPreemptedForCriticalPod", transient, podReason("Preempting")),
		failure(-1004, "PodDeadlineExceeded", permanent, podReason("DeadlineExceeded")),
		failure(-1005, "PodNodeAdmissionForbidden", permanent, podReason("Forbidden")),
		failure(-1006, "PodNodeAdmissionUnexpectedError", transient,
			podReason("UnexpectedAdmissionError"),
			podReason("UnknownReason"),
			podReason("InvalidNodeInfo"),
			podReason("UnexpectedPredicateFailureType")),

		// -1200 to -1399: what the container runtime reports. It starts no
		// container with an exit code from 125 to 128.
		failure(-1200, "ContainerDockerOOMKilled", permanent, container("OOMKilled", Int32Range{Min: ptr.To[int32](1)}, anything)),
		failure(-1201, "ContainerDockerCreationError", "", cannotRun(125, anything)),
		failure(-1202, "ContainerDockerStartCmdPermissionDenied", permanent, cannotRun(126, anything)),
		failure(-1203, "ContainerDockerStartCmdNotFound", permanent,
			cannotRun(127, anything),
			cannotRun(128, "(?msi).*(not found|cannot find|no such).*")),
		failure(-1204, "ContainerDockerStartUnknownError", "", cannotRun(128, anything)),

		// 129 to 192: a signal ended the container: 128 and its number.
		failure(130, "ContainerSigIntReceived", transient, exited(130)),
		failure(131, "ContainerSigQuitReceived", transient, exited(131)),
		failure(132, "ContainerSigIllReceived", permanent, exited(132)),
		failure(134, "ContainerSigAbrtReceived", "", exited(134)),
		failure(135, "ContainerSigBusReceived", permanent, exited(135)),
		failure(136, "ContainerSigFpeReceived", permanent, exited(136)),
		failure(137, "ContainerSigKillReceived", transient, exited(137)),
		failure(139, "ContainerSigSegvReceived", permanent, exited(139)),
		failure(141, "ContainerSigPipeReceived", permanent, exited(141)),
		failure(143, "ContainerSigTermReceived", transient, exited(143)),
	}
}

// failure is a code with the Pods that it fits. An empty attribute is none: the
// nature of the failure is unknown.
func failure(code frameworkv1.CompletionCode, phrase string, attribute frameworkv1.CompletionTypeAttribute, patterns ...*PodPattern) CompletionCodeInfo {
	info := CompletionCodeInfo{
		Code:        ptr.To(code),
		Phrase:      phrase,
		Type:        frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeFailed},
		PodPatterns: patterns,
	}
	if attribute != "" {
		info.Type.Attributes = []frameworkv1.CompletionTypeAttribute{attribute}
	}
	return info
}

// podReason fits a Pod whose status.reason is the given one, in any case of
// letters.
func podReason(reason string) *PodPattern {
	return &PodPattern{ReasonRegex: wholeWord(reason), MessageRegex: anything}
}

// exited fits a Pod with a container that ended with an exit code.
func exited(code int32) *PodPattern {
	return container("", exactly(code), anything)
}

// cannotRun fits a Pod with a container that could not be started.
func cannotRun(code int32, messageRegex string) *PodPattern {
	return container("ContainerCannotRun", exactly(code), messageRegex)
}

func container(reason string, codes Int32Range, messageRegex string) *PodPattern {
	pattern := &ContainerPattern{NameRegex: anything, MessageRegex: messageRegex, CodeRange: codes}
	if reason != "" {
		pattern.ReasonRegex = wholeWord(reason)
	}
	return &PodPattern{Containers: []*ContainerPattern{pattern}}
}

func exactly(code int32) Int32Range {
	return Int32Range{Min: ptr.To(code), Max: ptr.To(code)}
}

func wholeWord(regex string) string {
	return "(?i)^" + regex + "$"
}
