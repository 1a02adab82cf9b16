// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestStartIsWrittenAtOnce starts the Pods of a Framework one after another and
// measures how old the last news is when the status shows it.
func TestStartIsWrittenAtOnce(t *testing.T) {
	const tick, most, mostWrites = 50 * time.Millisecond, time.Second, 9
	running := func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	}
	// As FrameworkBarrier has it: a Pod is Pending until all have addresses.
	located := func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.1" }
	tests := map[string]struct {
		tasks int32
		every time.Duration
		start func(pod *corev1.Pod)
		shown func(task *frameworkv1.TaskStatus) bool
	}{
		"a few tasks that run":                 {4, 300 * time.Millisecond, running, isRunning},
		"many tasks that run":                  {300, 50 * time.Millisecond, running, isRunning},
		"slow starts":                          {10, 3 * time.Second, running, isRunning},
		"a few tasks that wait for each other": {4, 300 * time.Millisecond, located, isLocated},
		"slow starts that wait for each other": {10, 3 * time.Second, located, isLocated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(tc.tasks))
			begun := w.clock.Now()
			var last time.Time
			for started := 0; ; {
				if err := w.sync(); err != nil {
					t.Fatal(err)
				}
				if last.IsZero() && len(w.pods) == int(tc.tasks) && w.clock.Since(begun) >= time.Duration(started+1)*tc.every {
					changed := w.podList()[started].DeepCopy()
					tc.start(changed)
					w.put(changed)
					if started++; started == int(tc.tasks) {
						last = w.clock.Now()
					}
				}
				if !last.IsZero() && all(w.stored(), tc.shown) {
					break
				}
				w.clock.SetTime(w.clock.Now().Add(tick))
				if w.clock.Since(begun) > time.Hour {
					t.Fatalf("it is never shown; %d have started", started)
				}
			}
			if age := w.clock.Since(last); age > most {
				t.Errorf("the last start is shown after %v, want at most %v", age, most)
			}
			if writes := statusWrites(w); writes > mostWrites {
				t.Errorf("%d writes of the status, want at most %d", writes, mostWrites)
			}
		})
	}
}

// TestSlowServerIsAskedLess starts a few tasks within eight seconds on API servers
// that take more or less time to write, and counts the writes until all run.
func TestSlowServerIsAskedLess(t *testing.T) {
	const tick, start = 50 * time.Millisecond, 8 * time.Second
	tests := map[string]struct {
		takes  time.Duration
		writes int
	}{
		// Before the ConfigMap, after three seconds and the same after that, and when
		// all run.
		"an idle one": {5 * time.Millisecond, 4},
		// Before the ConfigMap and when all run.
		"a busy one": {100 * time.Millisecond, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(4))
			w.updateError = func([]byte) error {
				w.clock.SetTime(w.clock.Now().Add(tc.takes))
				return nil
			}
			begun := w.clock.Now()
			for started := 0; w.stored() == nil || !all(w.stored(), isRunning); {
				if err := w.sync(); err != nil {
					t.Fatal(err)
				}
				if len(w.pods) == 4 && started < 4 && w.clock.Since(begun) >= time.Duration(started+1)*start/4 {
					changed := w.podList()[started].DeepCopy()
					changed.Status.Phase = corev1.PodRunning
					w.put(changed)
					started++
				}
				w.clock.SetTime(w.clock.Now().Add(tick))
				if w.clock.Since(begun) > time.Minute {
					t.Fatalf("that all run is never shown; %d have started", started)
				}
			}
			if writes := statusWrites(w); writes != tc.writes {
				t.Errorf("%d writes of the status, want %d", writes, tc.writes)
			}
		})
	}
}

// TestRemovalIsWrittenAtOnce removes the Pods of tasks that have ended one after
// another, and measures how old the last removal is when the Framework is Completed.
func TestRemovalIsWrittenAtOnce(t *testing.T) {
	const tasks, tick, most, mostWrites = 300, 50 * time.Millisecond, time.Second, 9
	tests := map[string]func(pod *corev1.Pod) int32{
		"all have succeeded": succeed,
		"some have failed": func(pod *corev1.Pod) int32 {
			if strings.HasSuffix(pod.Name, "0") {
				return 1
			}
			return 0
		},
	}
	for name, exit := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(tasks))
			w.framework.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](-1)
			sync := func() {
				t.Helper()
				if err := w.sync(); err != nil {
					t.Fatal(err)
				}
				w.clock.SetTime(w.clock.Now().Add(tick))
			}
			for begun := w.clock.Now(); w.stored() == nil || !all(w.stored(), hasEnded); sync() {
				if len(w.pods) == tasks && w.podList()[0].Status.ContainerStatuses == nil {
					w.live(exit)
				}
				if w.clock.Since(begun) > time.Minute {
					t.Fatal("that all have ended is never shown")
				}
			}
			before := statusWrites(w)
			var last time.Time
			for begun := w.clock.Now(); w.stored().State != frameworkv1.FrameworkCompleted; sync() {
				if pods := w.podList(); len(pods) > 0 && pods[0].DeletionTimestamp != nil {
					w.remove(pods[0].Name)
					last = w.clock.Now()
				}
				w.collectGarbage()
				if w.clock.Since(begun) > time.Minute {
					t.Fatalf("it is never Completed; %d Pods are left", len(w.pods))
				}
			}
			if age := w.clock.Since(last); age > most {
				t.Errorf("Completed %v after the last Pod was gone, want at most %v", age, most)
			}
			if writes := statusWrites(w) - before; writes > mostWrites {
				t.Errorf("%d writes of the status, want at most %d", writes, mostWrites)
			}
		})
	}
}

// TestRetryAfterSuccessIsNotKeptWaiting has all tasks of a service end well, which are
// retried however they end, and measures how long it takes until they run again.
func TestRetryAfterSuccessIsNotKeptWaiting(t *testing.T) {
	const tasks, tick, most = 100, 50 * time.Millisecond, 5 * time.Second
	tests := map[string]struct{ stuck int }{
		"all Pods go":                     {0},
		"a Pod does not go from its node": {1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fw := framework(tasks)
			fw.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = -2
			w := newWorld(t, fw)
			runsAgain := func(task *frameworkv1.TaskStatus) bool {
				return isRunning(task) && task.RetryPolicyStatus.TotalRetriedCount > 0
			}
			stuck := map[string]bool{}
			var ended time.Time
			for begun := w.clock.Now(); w.stored() == nil || countTasks(w.stored(), runsAgain) < tasks-tc.stuck; {
				if err := w.sync(); err != nil {
					t.Fatal(err)
				}
				w.clock.SetTime(w.clock.Now().Add(tick))
				end := ended.IsZero() && w.stored() != nil && all(w.stored(), isRunning)
				if end {
					ended = w.clock.Now()
				}
				for i, pod := range w.podList() {
					changed := pod.DeepCopy()
					switch {
					case pod.DeletionTimestamp != nil:
						if !stuck[pod.Name] {
							w.remove(pod.Name)
						}
					case pod.Status.Phase == corev1.PodPending:
						changed.Status.Phase = corev1.PodRunning
						w.put(changed)
					case end:
						stuck[pod.Name] = i < tc.stuck
						changed.Status.Phase = corev1.PodSucceeded
						w.put(changed)
					}
				}
				if w.clock.Since(begun) > 5*time.Minute {
					t.Fatal("they never run again")
				}
			}
			if took := w.clock.Since(ended); took > most {
				t.Errorf("they run again after %v, want at most %v", took, most)
			}
		})
	}
}

func isRunning(task *frameworkv1.TaskStatus) bool {
	return task.State == frameworkv1.TaskAttemptRunning
}

func hasEnded(task *frameworkv1.TaskStatus) bool {
	return task.AttemptStatus.CompletionStatus != nil
}

func isLocated(task *frameworkv1.TaskStatus) bool {
	return task.AttemptStatus.PodIP != nil && *task.AttemptStatus.PodIP != ""
}

func all(status *frameworkv1.FrameworkStatus, is func(*frameworkv1.TaskStatus) bool) bool {
	return countTasks(status, func(task *frameworkv1.TaskStatus) bool { return !is(task) }) == 0
}

// countTasks is how many tasks are so.
func countTasks(status *frameworkv1.FrameworkStatus, is func(*frameworkv1.TaskStatus) bool) int {
	n := 0
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			if is(task) {
				n++
			}
		}
	}
	return n
}

func statusWrites(w *world) int {
	writes := 0
	for _, write := range w.log {
		if write == fmt.Sprintf("update frameworks/status %s", w.framework.Name) {
			writes++
		}
	}
	return writes
}
