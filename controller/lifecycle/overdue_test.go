// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestAPodWhoseDeletionDoesNotEndIsNamed: with its node and since when, while the Framework waits
// for it, and no longer.
func TestAPodWhoseDeletionDoesNotEndIsNamed(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.RetryPolicy.MaxRetryCount = 2
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
	w := newWorld(t, f)
	var warned []string
	w.onEvent = func(e Event) {
		if e.Reason == frameworkv1.ReasonWaiting && e.Warning {
			warned = append(warned, e.Message)
		}
	}
	w.run()
	w.runPods()
	w.pods["fw-w-1"].Spec.NodeName = "node-1"
	w.setPhase("fw-w-1", corev1.PodFailed, 1)
	w.run()
	began := w.now
	w.now = w.now.Add(30*time.Second + 59*time.Second)
	w.run()
	if len(warned) > 0 {
		t.Fatalf("the user was warned before the time: %v", warned)
	}
	w.now = w.now.Add(2 * time.Second)
	w.run()
	blocked := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionTasksBlocked)
	if blocked == nil || len(warned) != 1 || blocked.Message != warned[0] {
		t.Fatalf("the condition is %v, the user was warned of %v", blocked, warned)
	}
	for _, part := range []string{"Pod fw-w-1 ", " on node node-1 ", began.UTC().Format(time.RFC3339)} {
		if !strings.Contains(warned[0], part) {
			t.Errorf("the message does not have %q: %s", part, warned[0])
		}
	}
	w.crash()
	w.run()
	if after := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionTasksBlocked); after == nil || *after != *blocked || len(warned) != 1 {
		t.Errorf("after a change of leader the condition is %v, the user was warned of %v", after, warned)
	}
	w.settles()
	if meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionTasksBlocked) != nil {
		t.Error("the condition outlives the Pod")
	}
}
