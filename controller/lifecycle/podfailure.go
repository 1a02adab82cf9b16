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
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// PodFailureRules assign a completion code to a failed Pod:
//
//  1. If the cluster ended the Pod, only patterns on the Pod's own reason are tried. If none fits, the code is −101
//     (PodExternalDeleted), whatever the exit code.
//  2. For other Pods all patterns are tried in order, the predefined exit codes 200, 201 and 210 first. The first
//     pattern that fits in full decides.
//
// Diagnostics end in one line of JSON after "matched: " or "unmatched: ", which clients of FrameworkController parse.
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

// NewPodFailureRules compiles the rules of a configuration. An error names the rule and the regular expression.
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

// predefinedContainerCodes returns the exit codes by which a container itself classifies a failure.
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

// compileRegexes compiles the three of a pattern. An empty value is nil.
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

// matchedPod holds the fields of a Pod that fitted a pattern, and only fields that occur in the pattern.
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

// Classify returns the end of a task's attempt after a failure of the Pod.
func (r *PodFailureRules) Classify(pod *corev1.Pod) *frameworkv1.TaskAttemptCompletionStatus {
	verdict, how := podend.Of(pod), podCompletion(pod)
	completion := &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: r.classify(pod, verdict, how), Pod: how}
	completion.Disruption = disruptionOf(verdict)
	return completion
}

func (r *PodFailureRules) classify(pod *corev1.Pod, verdict podend.Verdict, how *frameworkv1.PodCompletionStatus) frameworkv1.CompletionStatus {
	for _, rule := range r.rules {
		for _, pattern := range rule.patterns {
			if matched, ok := pattern.match(pod, verdict); ok {
				completion := rule.status
				completion.Diagnostics = "Pod failed: PodPattern matched: " + oneLine(matched)
				return completion
			}
		}
	}
	if verdict.ByCluster() {
		return Completion(frameworkv1.CodePodExternalDeleted, "The Pod "+verdict.String()+": PodPattern unmatched: "+oneLine(how))
	}
	completion := Completion(frameworkv1.CodePodFailedWithoutFailedContainer, "Pod failed: PodPattern unmatched: "+oneLine(how))
	if code, known := verdict.ExitCode(); known {
		completion.Code, completion.Phrase = frameworkv1.CompletionCode(code), frameworkv1.PhraseContainerUnrecognizedFailed
	}
	return completion
}

// isOnReason reports whether a pattern requires the Pod to have a certain reason. A regular expression that also
// matches an empty reason, such as ".*", requires none.
func (p podPattern) isOnReason() bool { return p.reason != nil && !p.reason.MatchString("") }

// match returns whether a Pod with a verdict fits the pattern, and the fields that fit. A Pod that the cluster ended
// fits only patterns on its reason. Sidecars fit no pattern, because their exit codes don't decide about the Pod.
func (p podPattern) match(pod *corev1.Pod, verdict podend.Verdict) (matchedPod, bool) {
	var matched matchedPod
	fits := (p.isOnReason() || !verdict.ByCluster()) &&
		find(p.name, pod.Name, &matched.Name) &&
		find(p.reason, pod.Status.Reason, &matched.Reason) &&
		find(p.message, pod.Status.Message, &matched.Message)
	if !fits {
		return matchedPod{}, false
	}
	statuses := podend.Deciding(pod)
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

// match reports whether a container fits the pattern, and the fields that fit. All fields except the name need the
// container to have ended.
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

// find searches a text for the expression and stores the match in `found`. A nil expression matches any text and stores
// nothing.
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

// contains reports whether a number is in a range, and stores the number in `found`. An unset range contains every
// number and stores nothing.
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

// podCompletion returns how a Pod and the containers ended.
func podCompletion(pod *corev1.Pod) *frameworkv1.PodCompletionStatus {
	completion := &frameworkv1.PodCompletionStatus{Reason: pod.Status.Reason, Message: pod.Status.Message}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
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
