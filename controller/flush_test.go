// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// createPods leads a Framework to where its Pods are created and no status tells of them.
func createPods(t *testing.T, c *cluster) {
	t.Helper()
	apiserver.Add(c.server, newFramework(2))
	for len(c.podsOf("ns", "fw-w-")) < 2 {
		c.pass(10 * time.Millisecond)
	}
	for _, task := range tasksOf(c.statusOf("ns", "fw")) {
		if task.AttemptStatus.PodUID != nil {
			t.Fatal("a UID is written already: the stop would show nothing")
		}
	}
}

// stop tells the controller to end, and waits for that.
func (c *cluster) stop(t *testing.T) {
	t.Helper()
	c.stopProgram()
	if !c.awaitPrograms(time.Minute) {
		t.Error("the controller does not end")
	}
}

// TestStopLosesNoPod stops a controller that has just created Pods. The next one
// goes on with them.
func TestStopLosesNoPod(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		createPods(t, c)
		c.stop(t)
		for _, task := range tasksOf(c.statusOf("ns", "fw")) {
			if task.AttemptStatus.PodUID == nil {
				t.Errorf("the Pod of task %d is not on record", task.Index)
			}
		}
		c.startProgram()
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		creations := 0
		for _, write := range c.writes() {
			if strings.HasPrefix(write, "create pods") {
				creations++
			}
		}
		if creations != 2 {
			t.Errorf("%d Pods were created, want 2: %q", creations, c.writes())
		}
	})
}

// TestStopOverwritesNobody stops a controller that leads no more: somebody else has
// written since, which it has not seen.
func TestStopOverwritesNobody(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		createPods(t, c)
		c.program.process.Hold("frameworks")
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			metav1.SetMetaDataAnnotation(&f.ObjectMeta, "example.com/note", "changed")
		})
		before := c.statusOf("ns", "fw")
		c.server.ClearJournal()
		c.stop(t)
		if diff := cmp.Diff(before, c.statusOf("ns", "fw")); diff != "" {
			t.Errorf("the status was overwritten (-before +after):\n%s", diff)
		}
		if tries := c.tries(); len(tries) != 1 || describeWrite(tries[0]) != statusWrite || tries[0].Code != http.StatusConflict {
			t.Errorf("the writes are %v, want one of the status, that is a conflict", tries)
		}
	})
}
