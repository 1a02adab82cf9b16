// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// End is how an attempt of a Framework or a task ended.
type End struct {
	Code frameworkv1.CompletionCode
	// Phrase is the name of the completion code, such as PodExternalDeleted; Error if the code is the exit code of a
	// program.
	Phrase string
	// Disruption is Preempted, NodeLost or Evicted, or empty.
	Disruption string
	// Trigger is the task that ended an attempt of a Framework, as ROLE/INDEX, or empty.
	Trigger string
	// Diagnostics are for people, and may be long.
	Diagnostics string
}

// endOf returns an end that no task triggered.
func endOf(end *frameworkv1.CompletionStatus) *End {
	return &End{Code: end.Code, Phrase: InWords(end.Phrase), Disruption: string(end.Disruption), Diagnostics: InWords(end.Diagnostics)}
}

// endOfAttempt returns the end of an attempt of a Framework.
func endOfAttempt(end *frameworkv1.FrameworkAttemptCompletionStatus) *End {
	e := endOf(&end.CompletionStatus)
	e.Trigger = trigger(end)
	return e
}

// Why returns the end in a word: the disruption or the phrase.
func (e *End) Why() string { return cmp.Or(e.Disruption, e.Phrase) }

// Says describes the end: worker/0 exited with 1: CUDA out of memory.
func (e *End) Says() string {
	says := cmp.Or(e.Diagnostics, e.Why(), fmt.Sprintf("code %d", e.Code))
	if why := e.Why(); why != "" && says != why && !strings.HasPrefix(says, exited) && !strings.HasPrefix(says, why) {
		says = why + ": " + says
	}
	switch {
	case e.Trigger == "":
		return says
	case strings.HasPrefix(says, exited):
		return e.Trigger + " " + says
	default:
		return e.Trigger + ": " + says
	}
}

// exited begins what is said of a container that ended.
const exited = "exited with "

// patterns begin the part of diagnostics that is for programs: JSON follows.
var patterns = []string{"PodPattern matched: ", "PodPattern unmatched: "}

// InWords rewrites a text of the controller for users. In place of JSON about a failed Pod it says how the Pod failed,
// and it replaces FrameworkController's phrase for an exit code by Kubernetes' own.
func InWords(text string) string {
	text = strings.ReplaceAll(text, frameworkv1.PhraseContainerUnrecognizedFailed, "Error")
	for _, begins := range patterns {
		before, failed, found := strings.Cut(text, begins)
		if !found {
			continue
		}
		if said, only := strings.CutSuffix(before, "Pod failed: "); only {
			return said + podInWords(failed)
		}
		return strings.TrimSuffix(before, ": ")
	}
	return text
}

// podInWords says in words how a Pod failed. diagnostics is JSON, and may have been truncated.
func podInWords(text string) string {
	var pod frameworkv1.PodCompletionStatus
	cut := strings.TrimRight(strings.TrimSuffix(text, "…"), `\`)
	if !slices.ContainsFunc([]string{"", `"}]}`, `}]}`, `]}`, `"}`, `}`}, func(end string) bool {
		pod = frameworkv1.PodCompletionStatus{}
		return json.Unmarshal([]byte(cut+end), &pod) == nil
	}) {
		return "the Pod failed"
	}
	if pod.Reason != "" || pod.Message != "" {
		return withMessage(cmp.Or(pod.Reason, "the Pod failed"), pod.Message)
	}
	at := slices.IndexFunc(pod.Containers, func(c *frameworkv1.ContainerCompletionStatus) bool { return c != nil && (c.Code != 0 || c.Signal != 0) })
	if at < 0 {
		return "the Pod failed, and no container of it did"
	}
	container := pod.Containers[at]
	says := fmt.Sprintf("%s%d", exited, container.Code)
	if container.Signal != 0 && container.Code == 0 {
		says = fmt.Sprintf("was ended by signal %d", container.Signal)
	}
	if container.Reason != "" && container.Reason != "Error" {
		says += " (" + container.Reason + ")"
	}
	if len(pod.Containers) > 1 && container.Name != "" {
		says += ", its container " + container.Name
	}
	return withMessage(says, container.Message)
}

func withMessage(says, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return says
	}
	return says + ": " + message
}
