// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// TestEachWayInWhichAPodEndsHasItsCode holds the table of all ways against a task that retries
// only what the cluster did.
func TestEachWayInWhichAPodEndsHasItsCode(t *testing.T) {
	shipped, err := NewPodFailureRules(configv1alpha1.DefaultPodFailureSpec())
	if err != nil {
		t.Fatal(err)
	}
	none, err := NewPodFailureRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range podways.Ways() {
		for name, tc := range map[string]struct {
			rules *PodFailureRules
			want  int32
		}{
			"shipped patterns": {shipped, way.Framework.Code},
			"no patterns":      {none, way.Framework.Unlisted},
		} {
			t.Run(way.Name+", "+name, func(t *testing.T) {
				end, retried := endIn(t, way, tc.rules)
				if end.Code != frameworkv1.CompletionCode(tc.want) || end.Disruption != frameworkv1.Disruption(way.Framework.Disruption) {
					t.Errorf("the task ended with %d and the disruption %q, want %d and %q: %s",
						end.Code, end.Disruption, tc.want, way.Framework.Disruption, end.Diagnostics)
				}
				if transient := way.Framework.Type == "Transient" && (tc.rules == shipped || tc.want == -101); retried != transient {
					t.Errorf("it was retried: %v, want %v", retried, transient)
				}
			})
		}
	}
}

// endIn has the Pod of a task end in a way.
func endIn(t *testing.T, way podways.Way, rules *PodFailureRules) (end frameworkv1.CompletionStatus, retried bool) {
	t.Helper()
	tasks := role("w", 1)
	tasks.Task.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: true}
	w := newWorld(t, framework(tasks))
	w.options.PodFailures = rules
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		if len(after.AttemptStatus.TaskRoleStatuses) == 0 {
			return
		}
		attempt := after.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus
		retried = retried || attempt.ID > 0
		if completion := attempt.CompletionStatus; completion != nil && attempt.ID == 0 {
			end = completion.CompletionStatus
		}
	}
	w.run()
	w.runPods()
	pod := w.pods["fw-w-0"]
	if way.Deletes() {
		w.deletePod(pod.Name, 30)
	}
	way.Happen(pod, w.now)
	w.podChanged(pod)
	w.settles()
	return end, retried
}

// TestAUsersCatchAllFitsNoEndByTheCluster: a pattern on exit codes, or on any reason at all,
// says nothing of a node that shuts down; one that names the reason does.
func TestAUsersCatchAllFitsNoEndByTheCluster(t *testing.T) {
	code := frameworkv1.CompletionCode(17)
	least := int32(0)
	for name, tc := range map[string]struct {
		pattern configv1alpha1.PodPattern
		want    frameworkv1.CompletionCode
	}{
		"any exit code": {configv1alpha1.PodPattern{Containers: []*configv1alpha1.ContainerPattern{{CodeRange: configv1alpha1.Int32Range{Min: &least}}}}, -101},
		"any reason":    {configv1alpha1.PodPattern{ReasonRegex: "(?ms).*"}, -101},
		"any Pod":       {configv1alpha1.PodPattern{}, -101},
		"the reason":    {configv1alpha1.PodPattern{ReasonRegex: "^Terminated$"}, 17},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := NewPodFailureRules([]configv1alpha1.CompletionCodeInfo{{Code: &code, PodPatterns: []*configv1alpha1.PodPattern{&tc.pattern}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, way := range podways.Ways() {
				if way.Name == "its node shuts down, and it exits with 1" {
					if end, _ := endIn(t, way, rules); end.Code != tc.want {
						t.Errorf("the task ended with %d, want %d", end.Code, tc.want)
					}
					return
				}
			}
			t.Fatal("the table has no node that shuts down")
		})
	}
}
