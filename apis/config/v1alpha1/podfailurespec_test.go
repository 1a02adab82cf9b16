// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultPodFailureSpec writes the whole classification as text: one line a
// pattern, so that a change of any of it is seen.
func TestDefaultPodFailureSpec(t *testing.T) {
	want := strings.TrimSpace(`
-1000 PodEvicted Transient: Pod reason (?i)^Evicted$ message (?ms).*
-1001 PodNodeLost Transient: Pod reason (?i)^NodeLost$ message (?ms).*
-1002 PodScheduledToInsufficientResourceNode Transient: Pod reason (?i)^OutOf\S+$ message (?ms).*
-1003 PodPreemptedForCriticalPod Transient: Pod reason (?i)^Preempting$ message (?ms).*
-1004 PodDeadlineExceeded Permanent: Pod reason (?i)^DeadlineExceeded$ message (?ms).*
-1005 PodNodeAdmissionForbidden Permanent: Pod reason (?i)^Forbidden$ message (?ms).*
-1006 PodNodeAdmissionUnexpectedError Transient: Pod reason (?i)^UnexpectedAdmissionError$ message (?ms).*
-1006 PodNodeAdmissionUnexpectedError Transient: Pod reason (?i)^UnknownReason$ message (?ms).*
-1006 PodNodeAdmissionUnexpectedError Transient: Pod reason (?i)^InvalidNodeInfo$ message (?ms).*
-1006 PodNodeAdmissionUnexpectedError Transient: Pod reason (?i)^UnexpectedPredicateFailureType$ message (?ms).*
-1200 ContainerDockerOOMKilled Permanent: container reason (?i)^OOMKilled$ codes 1.. message (?ms).*
-1201 ContainerDockerCreationError : container reason (?i)^ContainerCannotRun$ codes 125..125 message (?ms).*
-1202 ContainerDockerStartCmdPermissionDenied Permanent: container reason (?i)^ContainerCannotRun$ codes 126..126 message (?ms).*
-1203 ContainerDockerStartCmdNotFound Permanent: container reason (?i)^ContainerCannotRun$ codes 127..127 message (?ms).*
-1203 ContainerDockerStartCmdNotFound Permanent: container reason (?i)^ContainerCannotRun$ codes 128..128 message (?msi).*(not found|cannot find|no such).*
-1204 ContainerDockerStartUnknownError : container reason (?i)^ContainerCannotRun$ codes 128..128 message (?ms).*
130 ContainerSigIntReceived Transient: container reason  codes 130..130 message (?ms).*
131 ContainerSigQuitReceived Transient: container reason  codes 131..131 message (?ms).*
132 ContainerSigIllReceived Permanent: container reason  codes 132..132 message (?ms).*
134 ContainerSigAbrtReceived : container reason  codes 134..134 message (?ms).*
135 ContainerSigBusReceived Permanent: container reason  codes 135..135 message (?ms).*
136 ContainerSigFpeReceived Permanent: container reason  codes 136..136 message (?ms).*
137 ContainerSigKillReceived Transient: container reason  codes 137..137 message (?ms).*
139 ContainerSigSegvReceived Permanent: container reason  codes 139..139 message (?ms).*
141 ContainerSigPipeReceived Permanent: container reason  codes 141..141 message (?ms).*
143 ContainerSigTermReceived Transient: container reason  codes 143..143 message (?ms).*
`)
	spec := DefaultPodFailureSpec()
	var lines []string
	for _, info := range spec {
		var attributes []string
		for _, attribute := range info.Type.Attributes {
			attributes = append(attributes, string(attribute))
		}
		for _, pattern := range info.PodPatterns {
			lines = append(lines, fmt.Sprintf("%d %s %s: %s", *info.Code, info.Phrase, strings.Join(attributes, ","), patternText(pattern)))
		}
		if info.Type.Name != "Failed" {
			t.Errorf("type of %d: got %q, want Failed", *info.Code, info.Type.Name)
		}
	}
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("DefaultPodFailureSpec (-want,+got):\n%s", diff)
	}
	if len(spec) != 22 {
		t.Errorf("codes: got %d, want 22", len(spec))
	}
	if errs := Validate(&ControllerConfiguration{PodFailureSpec: spec}); len(errs) > 0 {
		t.Errorf("the default is not valid: %v", errs)
	}
}

func patternText(pattern *PodPattern) string {
	if len(pattern.Containers) == 0 {
		return fmt.Sprintf("Pod reason %s message %s", pattern.ReasonRegex, pattern.MessageRegex)
	}
	c := pattern.Containers[0]
	codes := ""
	if c.CodeRange.Min != nil {
		codes = fmt.Sprint(*c.CodeRange.Min)
	}
	codes += ".."
	if c.CodeRange.Max != nil {
		codes += fmt.Sprint(*c.CodeRange.Max)
	}
	return fmt.Sprintf("container reason %s codes %s message %s", c.ReasonRegex, codes, c.MessageRegex)
}
