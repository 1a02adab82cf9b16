// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestAnAttemptThatHasNotBegunKeepsOnlyPresentTasks: the status of a Framework that waits
// does not grow with the number of its edits.
func TestAnAttemptThatHasNotBegunKeepsOnlyPresentTasks(t *testing.T) {
	rename := func(w *world, times int) {
		for i := range times {
			w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].Name = fmt.Sprint("r", i) })
			w.run()
		}
	}
	scale := func(number int32) func(*frameworkv1.Framework) {
		return func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = number }
	}
	start := func(f *frameworkv1.Framework) { f.Spec.ExecutionType = frameworkv1.ExecutionStart }
	tests := map[string]struct {
		story func(w *world)
		want  string
	}{
		"50 renames":      {func(w *world) { rename(w, 50) }, "F#0 AttemptCreationPending, r49-0#0 AttemptCreationPending, r49-1#0 AttemptCreationPending"},
		"then a Start":    {func(w *world) { rename(w, 50); w.edit(start); w.run() }, "F#0 AttemptPreparing, r49-0#0 AttemptPreparing, r49-1#0 AttemptPreparing"},
		"fewer":           {func(w *world) { w.edit(scale(1)); w.run() }, "F#0 AttemptCreationPending, w-0#0 AttemptCreationPending"},
		"none":            {func(w *world) { w.edit(scale(0)); w.run() }, "F#0 AttemptCreationPending"},
		"fewer, and more": {func(w *world) { w.edit(scale(0)); w.run(); w.edit(scale(1)); w.run() }, "F#0 AttemptCreationPending, w-0#0 AttemptCreationPending"},
		"renames whose writes fail": {func(w *world) {
			w.fate = func() fate { return refused }
			rename(w, 50)
			w.fate = func() fate { return done }
			w.run()
		}, "F#0 AttemptCreationPending, r49-0#0 AttemptCreationPending, r49-1#0 AttemptCreationPending"},
		"a quota that refuses the ConfigMap": {func(w *world) {
			w.edit(start)
			w.fate = func() fate { return refused }
			rename(w, 50)
			w.fate = func() fate { return done }
			w.run()
		}, "F#0 AttemptPreparing, r49-0#0 AttemptPreparing, r49-1#0 AttemptPreparing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", 2))
			f.Spec.ExecutionType = frameworkv1.ExecutionCreate
			w := newWorld(t, f)
			most := 0
			w.onWrite = func(_, after *frameworkv1.FrameworkStatus) { most = max(most, len(tasksByUID(after))) }
			w.run()
			tc.story(w)
			if got := transcript(w.written); got != tc.want {
				t.Errorf("the status is %s, want %s", got, tc.want)
			}
			if most > 2 {
				t.Errorf("up to %d tasks were stored, want 2", most)
			}
		})
	}
}

// TestATaskThatCameBackBeforeItsAttemptBeganIsNew, so nobody takes it for the one that
// was there, and it is stored before it gets a Pod.
func TestATaskThatCameBackBeforeItsAttemptBeganIsNew(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	w := newWorld(t, f)
	w.run()
	before := taskOf(w.written, 1).InstanceUID
	for _, number := range []int32{1, 2} {
		w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = number })
		w.run()
	}
	if now := taskOf(w.written, 1).InstanceUID; now == before {
		t.Errorf("it is still task %s", now)
	}
}

// TestAControllerThatDiedMayHaveBegunTheAttempt: what it has created of a task that the
// spec has lost meanwhile goes, also if the next controller sees it late.
func TestAControllerThatDiedMayHaveBegunTheAttempt(t *testing.T) {
	for name, seen := range map[string]bool{"its Pods are seen at once": true, "its Pods are seen late": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(role("stays", 1), role("goes", 2)))
			w.writeFrom = PersistNow
			w.run()
			if !strings.HasPrefix(transcript(w.written), "F#0 AttemptCreationPending") || len(w.pods) != 3 {
				t.Fatalf("%d Pods under the status %s, want 3 of which nothing is written", len(w.pods), transcript(w.written))
			}
			w.crash()
			w.writeFrom = PersistLater
			w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles = f.Spec.TaskRoles[:1] })
			pods, configMap := w.cache.pods, w.cache.configMap
			if !seen {
				w.cache.pods, w.cache.configMap = map[string]*corev1.Pod{}, nil
				w.fate = func() fate { return refused }
				w.run()
				w.fate = func() fate { return done }
				w.cache.pods, w.cache.configMap = pods, configMap
			}
			w.settle()
			if got, want := transcript(w.written), "F#0 AttemptPreparing, stays-0#0 AttemptPreparing"; got != want {
				t.Errorf("the status is %s, want %s", got, want)
			}
			if got := strings.Join(w.podNames(), " "); got != "fw-stays-0" {
				t.Errorf("the Pods are %s, want fw-stays-0", got)
			}
		})
	}
}

// TestAWaitingGangThatIsScaledDownLosesItsPodsFirst: with the lower minimum, the scheduler would
// give nodes to Pods that are about to be deleted.
func TestAWaitingGangThatIsScaledDownLosesItsPodsFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		placed, lost bool
		want         []string
	}{
		"a gang that waits": {false, false, []string{DeletePod, DeletePod, DeletePod, UpdatePodGroup}},
		"a gang that waits, and whose PodGroup is deleted": {false, true, []string{DeletePod, DeletePod, DeletePod, CreatePodGroup}},
		"a gang that runs": {true, false, []string{UpdatePodGroup, DeletePod, DeletePod, DeletePod}},
	} {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", 4))
			f.Spec.Gang = &frameworkv1.GangSpec{}
			w := newWorld(t, f)
			w.run()
			if tc.placed {
				g := &gangWorld{world: w}
				g.places("w-0", "w-1", "w-2", "w-3")
				w.run()
			}
			var done []string
			w.onAction = func(action Action) {
				if action.Does() == DeletePod || action.Does() == UpdatePodGroup || action.Does() == CreatePodGroup {
					done = append(done, action.Does())
				}
			}
			w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 1 })
			if tc.lost {
				w.podGroup = nil
				w.podGroupChanged()
			}
			w.run()
			if !slices.Equal(done, tc.want) {
				t.Errorf("the controller did %v, want %v", done, tc.want)
			}
			if w.settles(); w.podGroup.Spec.MinMember != 1 {
				t.Errorf("the minimum is %d in the end", w.podGroup.Spec.MinMember)
			}
		})
	}
}
