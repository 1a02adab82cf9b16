// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func failedPod(reason, message string, containers ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fw-w-0"},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: reason, Message: message, ContainerStatuses: containers,
		},
	}
}

func exited(name string, code int32, second int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: "line 1\nline 2",
		FinishedAt: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)),
	}}}
}

func TestClassifyPodFailure(t *testing.T) {
	code := func(c int32) *frameworkv1.CompletionCode { return ptr.To(frameworkv1.CompletionCode(c)) }
	rules, err := NewPodFailureRules([]configv1alpha1.CompletionCodeInfo{
		{Code: code(-1000), Phrase: "PodEvicted", PodPatterns: []*configv1alpha1.PodPattern{
			{ReasonRegex: "(?i)^Evicted$", MessageRegex: "(?ms).*"},
		}},
		{Code: code(221), Phrase: "TwoContainers", PodPatterns: []*configv1alpha1.PodPattern{
			{Containers: []*configv1alpha1.ContainerPattern{
				{CodeRange: configv1alpha1.Int32Range{Min: ptr.To[int32](41), Max: ptr.To[int32](42)}},
				{NameRegex: "^side", MessageRegex: "line [0-9]"},
			}},
		}},
		{Code: code(222), Phrase: "Killed", PodPatterns: []*configv1alpha1.PodPattern{
			{Containers: []*configv1alpha1.ContainerPattern{{SignalRange: configv1alpha1.Int32Range{Min: ptr.To[int32](9)}}}},
		}},
		{Code: code(223), Phrase: "Named", PodPatterns: []*configv1alpha1.PodPattern{
			{NameRegex: "never"},
			{Containers: []*configv1alpha1.ContainerPattern{{NameRegex: "^waiting$"}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	init := func(pod *corev1.Pod, status corev1.ContainerStatus) *corev1.Pod {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
		return pod
	}
	killed := exited("main", 1, 1)
	killed.State.Terminated.Signal = 11

	tests := map[string]struct {
		pod             *corev1.Pod
		wantCode        frameworkv1.CompletionCode
		wantPhrase      string
		wantDiagnostics string
	}{
		"a container says that its failure is Transient": {
			pod:             failedPod("", "", exited("main", 200, 1)),
			wantCode:        200,
			wantPhrase:      "ContainerTransientFailed",
			wantDiagnostics: `Pod failed: PodPattern matched: {"containers":[{"name":"main","message":"line 1\nline 2","code":200}]}`,
		},
		"the order of the codes decides, not that of the containers": {
			pod:             failedPod("", "", exited("a", 210, 1), exited("b", 200, 2)),
			wantCode:        200,
			wantPhrase:      "ContainerTransientFailed",
			wantDiagnostics: `Pod failed: PodPattern matched: {"containers":[{"name":"b","message":"line 1\nline 2","code":200}]}`,
		},
		"the Pod itself failed": {
			pod:             failedPod("Evicted", "low on memory"),
			wantCode:        -1000,
			wantPhrase:      "PodEvicted",
			wantDiagnostics: `Pod failed: PodPattern matched: {"reason":"Evicted","message":"low on memory"}`,
		},
		"two containers fit two patterns": {
			pod:             failedPod("", "", exited("main", 42, 1), exited("sidecar", 0, 1)),
			wantCode:        221,
			wantPhrase:      "TwoContainers",
			wantDiagnostics: `Pod failed: PodPattern matched: {"containers":[{"code":42},{"name":"side","message":"line 1"}]}`,
		},
		"a signal": {
			pod:             failedPod("", "", killed),
			wantCode:        222,
			wantPhrase:      "Killed",
			wantDiagnostics: `Pod failed: PodPattern matched: {"containers":[{"signal":11}]}`,
		},
		"a name needs no end": {
			pod:             failedPod("", "", corev1.ContainerStatus{Name: "waiting"}),
			wantCode:        223,
			wantPhrase:      "Named",
			wantDiagnostics: `Pod failed: PodPattern matched: {"containers":[{"name":"waiting"}]}`,
		},
		"the last container to fail gives an unknown failure its code": {
			pod:        init(failedPod("", "", exited("a", 3, 5), exited("b", 4, 5), exited("c", 0, 9)), exited("i", 2, 1)),
			wantCode:   3,
			wantPhrase: "ContainerUnrecognizedFailed",
			wantDiagnostics: `Pod failed: PodPattern unmatched: {"containers":[` +
				`{"name":"i","reason":"Error","message":"line 1\nline 2","code":2},` +
				`{"name":"a","reason":"Error","message":"line 1\nline 2","code":3},` +
				`{"name":"b","reason":"Error","message":"line 1\nline 2","code":4},` +
				`{"name":"c","reason":"Error","message":"line 1\nline 2","code":0}]}`,
		},
		"no container failed": {
			pod:             failedPod("Odd", "who knows", exited("main", 0, 1)),
			wantCode:        -300,
			wantPhrase:      "PodFailedWithoutFailedContainer",
			wantDiagnostics: `Pod failed: PodPattern unmatched: {"reason":"Odd","message":"who knows","containers":[{"name":"main","reason":"Error","message":"line 1\nline 2","code":0}]}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := rules.Classify(tc.pod)
			if got.Code != tc.wantCode || got.Phrase != tc.wantPhrase {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Phrase, tc.wantCode, tc.wantPhrase)
			}
			if diff := cmp.Diff(tc.wantDiagnostics, got.Diagnostics); diff != "" {
				t.Errorf("unexpected diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodFailureRulesNameTheWrongRegex(t *testing.T) {
	code := frameworkv1.CompletionCode(-1000)
	_, err := NewPodFailureRules([]configv1alpha1.CompletionCodeInfo{{Code: &code, PodPatterns: []*configv1alpha1.PodPattern{
		{Containers: []*configv1alpha1.ContainerPattern{{MessageRegex: "("}}},
	}}})
	if err == nil || !strings.Contains(err.Error(), "code -1000") || !strings.Contains(err.Error(), `messageRegex "("`) {
		t.Errorf("got %v, want an error that names the code and the expression", err)
	}
}
