// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// created leads a Framework to where its Pods are created and nothing tells of them.
func created(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, framework(2))
	for range 2 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	if len(w.pods) != 2 || w.stored().State != frameworkv1.FrameworkAttemptCreationPending {
		t.Fatalf("%d Pods and state %s, want 2 that nothing tells of", len(w.pods), w.stored().State)
	}
	return w
}

// TestStopLosesNoPod stops a controller that has just created Pods. The next one
// goes on with them.
func TestStopLosesNoPod(t *testing.T) {
	w := created(t)
	w.controller.flush(t.Context())
	for _, task := range w.stored().AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		if task.AttemptStatus.PodUID == nil {
			t.Errorf("the Pod of task %d is not on record", task.Index)
		}
	}
	w.restart()
	for range 3 {
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		w.live(succeed)
	}
	if w.stored().State != frameworkv1.FrameworkAttemptRunning {
		t.Errorf("the Framework is %s, want AttemptRunning", w.stored().State)
	}
	creations := 0
	for _, write := range w.log {
		if strings.HasPrefix(write, "create pods") {
			creations++
		}
	}
	if creations != 2 {
		t.Errorf("%d Pods were created, want 2: %q", creations, w.log)
	}
}

// TestStopOverwritesNobody stops a controller that leads no more: somebody else has
// written since.
func TestStopOverwritesNobody(t *testing.T) {
	w := created(t)
	before := len(w.log)
	w.framework.ResourceVersion = w.nextVersion()
	w.controller.flush(t.Context())
	if slices.Contains(w.log[before:], "update frameworks/status fw") {
		t.Error("the status was overwritten")
	}
}
