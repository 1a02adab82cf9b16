// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// PodFailureRules say what a failed Pod is called. The rules are tried in order,
// first the predefined exit codes 200, 201 and 210, and the first pattern that
// fits in full decides.
//
// Diagnostics end in one line of JSON after "matched: " or "unmatched: ", which
// clients of FrameworkController parse.
type PodFailureRules struct {
	rules []podFailureRule
}

type podFailureRule struct {
	status   frameworkv1.CompletionStatus
	patterns []podPattern
}

type podPattern struct {
	name, reason, message *regexp.Regexp
	containers            []containerPattern
}

type containerPattern struct {
	name, reason, message *regexp.Regexp
	signal, code          configv1alpha1.Int32Range
}

// NewPodFailureRules compiles the rules of a configuration. An error names the
// rule and its regular expression.
func NewPodFailureRules(infos []configv1alpha1.CompletionCodeInfo) (*PodFailureRules, error) {
	rules := &PodFailureRules{}
	for i, info := range slices.Concat(predefinedContainerCodes(), infos) {
		if info.Code == nil {
			return nil, fmt.Errorf("podFailureSpec[%d].code is required", i)
		}
		rule := podFailureRule{status: frameworkv1.CompletionStatus{Code: *info.Code, Phrase: info.Phrase, Type: info.Type}}
		if rule.status.Type.Name == "" {
			rule.status.Type.Name = frameworkv1.CompletionTypeFailed
		}
		for j, pattern := range info.PodPatterns {
			compiled, err := compilePodPattern(pattern)
			if err != nil {
				return nil, fmt.Errorf("podFailureSpec with code %d, podPatterns[%d]: %w", *info.Code, j, err)
			}
			rule.patterns = append(rule.patterns, compiled)
		}
		rules.rules = append(rules.rules, rule)
	}
	return rules, nil
}

// predefinedContainerCodes are the exit codes with which a container itself says
// what its failure is.
func predefinedContainerCodes() []configv1alpha1.CompletionCodeInfo {
	const anything = "(?ms).*"
	var infos []configv1alpha1.CompletionCodeInfo
	for _, code := range []frameworkv1.CompletionCode{
		frameworkv1.CodeContainerTransientFailed,
		frameworkv1.CodeContainerTransientConflictFailed,
		frameworkv1.CodeContainerPermanentFailed,
	} {
		phrase, completionType := phraseAndType(code)
		exitCode := int32(code)
		infos = append(infos, configv1alpha1.CompletionCodeInfo{
			Code: &code, Phrase: phrase, Type: completionType,
			PodPatterns: []*configv1alpha1.PodPattern{{Containers: []*configv1alpha1.ContainerPattern{{
				NameRegex: anything, MessageRegex: anything,
				CodeRange: configv1alpha1.Int32Range{Min: &exitCode, Max: &exitCode},
			}}}},
		})
	}
	return infos
}

func compilePodPattern(pattern *configv1alpha1.PodPattern) (podPattern, error) {
	var compiled podPattern
	if pattern == nil {
		return compiled, fmt.Errorf("must not be null")
	}
	var err error
	if compiled.name, compiled.reason, compiled.message, err =
		compileRegexes(pattern.NameRegex, pattern.ReasonRegex, pattern.MessageRegex); err != nil {
		return compiled, err
	}
	for i, container := range pattern.Containers {
		if container == nil {
			return compiled, fmt.Errorf("containers[%d] must not be null", i)
		}
		c := containerPattern{signal: container.SignalRange, code: container.CodeRange}
		if c.name, c.reason, c.message, err =
			compileRegexes(container.NameRegex, container.ReasonRegex, container.MessageRegex); err != nil {
			return compiled, fmt.Errorf("containers[%d]: %w", i, err)
		}
		compiled.containers = append(compiled.containers, c)
	}
	return compiled, nil
}

// compileRegexes compiles the three of a pattern. One that is empty is nil.
func compileRegexes(name, reason, message string) (nameRegex, reasonRegex, messageRegex *regexp.Regexp, err error) {
	compile := func(field, expression string) *regexp.Regexp {
		if expression == "" || err != nil {
			return nil
		}
		compiled, compileErr := regexp.Compile(expression)
		if compileErr != nil {
			err = fmt.Errorf("%s %q is no RE2 regular expression: %w", field, expression, compileErr)
		}
		return compiled
	}
	return compile("nameRegex", name), compile("reasonRegex", reason), compile("messageRegex", message), err
}

// matchedPod is what of a Pod fitted a pattern: only fields that the pattern has.
type matchedPod struct {
	Name       string             `json:"name,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Message    string             `json:"message,omitempty"`
	Containers []matchedContainer `json:"containers,omitempty"`
}

type matchedContainer struct {
	Name    string `json:"name,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Signal  *int32 `json:"signal,omitempty"`
	Code    *int32 `json:"code,omitempty"`
}

// Classify is how a task's attempt ends because its Pod failed.
func (r *PodFailureRules) Classify(pod *corev1.Pod) *frameworkv1.TaskAttemptCompletionStatus {
	completion := &frameworkv1.TaskAttemptCompletionStatus{Pod: podCompletion(pod)}
	for _, rule := range r.rules {
		for _, pattern := range rule.patterns {
			if matched, ok := pattern.match(pod); ok {
				completion.CompletionStatus = rule.status
				completion.Diagnostics = "Pod failed: PodPattern matched: " + oneLine(matched)
				return completion
			}
		}
	}
	diagnostics := "Pod failed: PodPattern unmatched: " + oneLine(completion.Pod)
	completion.CompletionStatus = Completion(frameworkv1.CodePodFailedWithoutFailedContainer, diagnostics)
	if failed := lastFailed(pod); failed != nil {
		_, completionType := phraseAndType(frameworkv1.CodePodFailedWithoutFailedContainer)
		completion.CompletionStatus = frameworkv1.CompletionStatus{
			Code:        frameworkv1.CompletionCode(failed.ExitCode),
			Phrase:      frameworkv1.PhraseContainerUnrecognizedFailed,
			Type:        completionType,
			Diagnostics: diagnostics,
		}
	}
	return completion
}

func (p podPattern) match(pod *corev1.Pod) (matchedPod, bool) {
	var matched matchedPod
	fits := find(p.name, pod.Name, &matched.Name) &&
		find(p.reason, pod.Status.Reason, &matched.Reason) &&
		find(p.message, pod.Status.Message, &matched.Message)
	if !fits {
		return matchedPod{}, false
	}
	statuses := containerStatuses(pod)
	for _, container := range p.containers {
		i := slices.IndexFunc(statuses, func(status corev1.ContainerStatus) bool {
			_, ok := container.match(status)
			return ok
		})
		if i < 0 {
			return matchedPod{}, false
		}
		if found, _ := container.match(statuses[i]); found != (matchedContainer{}) {
			matched.Containers = append(matched.Containers, found)
		}
	}
	return matched, true
}

// match tries a container. All but its name needs it to have ended.
func (p containerPattern) match(status corev1.ContainerStatus) (matchedContainer, bool) {
	var matched matchedContainer
	if !find(p.name, status.Name, &matched.Name) {
		return matched, false
	}
	if p.reason == nil && p.message == nil && p.signal == (configv1alpha1.Int32Range{}) && p.code == (configv1alpha1.Int32Range{}) {
		return matched, true
	}
	ended := status.State.Terminated
	fits := ended != nil &&
		find(p.reason, ended.Reason, &matched.Reason) &&
		find(p.message, ended.Message, &matched.Message) &&
		contains(p.signal, ended.Signal, &matched.Signal) &&
		contains(p.code, ended.ExitCode, &matched.Code)
	return matched, fits
}

// find searches for the expression and stores what it found. Nil fits anything
// and stores nothing.
func find(expression *regexp.Regexp, text string, found *string) bool {
	if expression == nil {
		return true
	}
	at := expression.FindStringIndex(text)
	if at == nil {
		return false
	}
	*found = text[at[0]:at[1]]
	return true
}

// contains looks for a number in a range and stores it. An unset range fits
// anything and stores nothing.
func contains(r configv1alpha1.Int32Range, number int32, found **int32) bool {
	if r.Min == nil && r.Max == nil {
		return true
	}
	if r.Min != nil && number < *r.Min || r.Max != nil && number > *r.Max {
		return false
	}
	*found = &number
	return true
}

// containerStatuses are those of init containers and then of the others.
func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// lastFailed is the end of the container that failed last, and of equals the
// first one.
func lastFailed(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	var last *corev1.ContainerStateTerminated
	for _, status := range containerStatuses(pod) {
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		if last == nil || last.FinishedAt.Before(&ended.FinishedAt) {
			last = ended
		}
	}
	return last
}

// podCompletion is how a Pod and its containers ended.
func podCompletion(pod *corev1.Pod) *frameworkv1.PodCompletionStatus {
	completion := &frameworkv1.PodCompletionStatus{Reason: pod.Status.Reason, Message: pod.Status.Message}
	for _, status := range containerStatuses(pod) {
		container := &frameworkv1.ContainerCompletionStatus{Name: status.Name}
		if ended := status.State.Terminated; ended != nil {
			container.Reason = ended.Reason
			container.Message = ended.Message
			container.Signal = ended.Signal
			container.Code = ended.ExitCode
		}
		completion.Containers = append(completion.Containers, container)
	}
	return completion
}

func oneLine(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(data)
}
