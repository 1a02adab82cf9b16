// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// FuzzClassifyPodFailure classifies Pods by rules. Rules that validation accepts
// compile, and the verdict is that of the first rule that fits, whose diagnostics
// quote the Pod.
func FuzzClassifyPodFailure(f *testing.F) {
	defaults, err := yaml.Marshal(configv1alpha1.DefaultPodFailureSpec())
	if err != nil {
		f.Fatal(err)
	}
	killed := exited("main", 137, 1)
	killed.State.Terminated.Reason, killed.State.Terminated.Signal = "OOMKilled", 9
	for _, pod := range []*corev1.Pod{
		failedPod("", ""),
		failedPod("Evicted", "low on memory"),
		failedPod("", "", exited("main", 200, 1), killed),
		failedPod("", "", corev1.ContainerStatus{Name: "waiting"}),
	} {
		data, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(defaults), data)
		f.Add(`[{code: 1, podPatterns: [{}]}]`, data)
		f.Add(`[{code: 220, podPatterns: [{nameRegex: "(", containers: [null]}]}]`, data)
		f.Add(`[{code: 221, podPatterns: [{messageRegex: "^$", containers: [{codeRange: {min: 1}}, {signalRange: {max: 0}}]}]}]`, data)
	}
	f.Fuzz(func(t *testing.T, file string, podJSON []byte) {
		var spec []configv1alpha1.CompletionCodeInfo
		var pod corev1.Pod
		if yaml.Unmarshal([]byte(file), &spec) != nil || json.Unmarshal(podJSON, &pod) != nil {
			return
		}
		config := &configv1alpha1.ControllerConfiguration{PodFailureSpec: spec}
		configv1alpha1.SetDefaults(config)
		valid := len(configv1alpha1.Validate(config)) == 0
		rules, err := NewPodFailureRules(spec)
		if err != nil {
			if valid {
				t.Errorf("validation accepts what does not compile: %v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not one line", err)
			}
			return
		}
		checkClassification(t, rules, &pod, rules.Classify(&pod))
	})
}

// checkClassification compares a verdict with what the rules say one by one.
func checkClassification(t *testing.T, rules *PodFailureRules, pod *corev1.Pod, got *frameworkv1.TaskAttemptCompletionStatus) {
	t.Helper()
	if again := rules.Classify(pod); !cmp.Equal(got, again) {
		t.Errorf("the verdict changes (-first +second):\n%s", cmp.Diff(got, again))
	}
	first := slices.IndexFunc(rules.rules, func(rule podFailureRule) bool {
		return slices.ContainsFunc(rule.patterns, func(pattern podPattern) bool {
			_, fits := pattern.match(pod, podend.Of(pod))
			return fits
		})
	})
	marker := "unmatched: "
	if first >= 0 {
		marker = " matched: "
		if want := rules.rules[first].status; got.Code != want.Code || got.Phrase != want.Phrase {
			t.Errorf("the verdict is %d %s, want that of the first rule that fits, %d %s", got.Code, got.Phrase, want.Code, want.Phrase)
		}
	}
	_, quoted, found := strings.Cut(got.Diagnostics, marker)
	if !found || !json.Valid([]byte(quoted)) || strings.Contains(quoted, "\n") {
		t.Errorf("the diagnostics end in no line of JSON: %q", got.Diagnostics)
	}
}
