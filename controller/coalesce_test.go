// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
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
			inCluster(t, func(t *testing.T, c *cluster) {
				apiserver.Add(c.server, newFramework(tc.tasks))
				begun := time.Now()
				var last time.Time
				for started := 0; last.IsZero() || !all(c.statusOf("ns", "fw"), tc.shown); {
					c.pass(tick)
					if last.IsZero() && time.Since(begun) >= time.Duration(started+1)*tc.every && len(c.podsOf("ns", "fw-w-")) == int(tc.tasks) {
						apiserver.Change(c.server, "ns", fmt.Sprint("fw-w-", started), tc.start)
						if started++; started == int(tc.tasks) {
							last = time.Now()
						}
					}
					if time.Since(begun) > time.Hour {
						t.Fatalf("it is never shown; %d have started", started)
					}
				}
				if age := time.Since(last); age > most {
					t.Errorf("the last start is shown after %v, want at most %v", age, most)
				}
				if writes := c.statusWrites(); writes > mostWrites {
					t.Errorf("%d writes of the status, want at most %d", writes, mostWrites)
				}
			})
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
			inCluster(t, func(t *testing.T, c *cluster) {
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if writesStatus(r) {
						return apiserver.Fault{Before: tc.takes}
					}
					return apiserver.Fault{}
				})
				apiserver.Add(c.server, newFramework(4))
				begun := time.Now()
				for started := 0; !all(c.statusOf("ns", "fw"), isRunning); {
					c.pass(tick)
					if started < 4 && time.Since(begun) >= time.Duration(started+1)*start/4 {
						c.step(fmt.Sprint("fw-w-", started), corev1.PodRunning)
						started++
					}
					if time.Since(begun) > time.Minute {
						t.Fatalf("that all run is never shown; %d have started", started)
					}
				}
				if writes := c.statusWrites(); writes != tc.writes {
					t.Errorf("%d writes of the status, want %d", writes, tc.writes)
				}
			})
		})
	}
}

// TestRemovalIsWrittenAtOnce removes the Pods of tasks that have ended one after
// another, and measures how old the last removal is when the Framework is Completed.
func TestRemovalIsWrittenAtOnce(t *testing.T) {
	const tasks, tick, most, mostWrites = 300, 50 * time.Millisecond, time.Second, 9
	tests := map[string]func(pod *corev1.Pod) (int32, bool){
		"all have succeeded": succeed,
		"some have failed": func(pod *corev1.Pod) (int32, bool) {
			if strings.HasSuffix(pod.Name, "0") {
				return 1, true
			}
			return 0, true
		},
	}
	for name, ends := range tests {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				f := newFramework(tasks)
				f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](-1)
				apiserver.Add(c.server, f)
				c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
				pods := c.podsOf("ns", "fw-w-")
				for _, pod := range pods {
					c.keep(pod)
				}
				c.ends = ends
				c.runNodes(1)
				for begun := time.Now(); !all(c.statusOf("ns", "fw"), hasEnded); c.pass(tick) {
					if time.Since(begun) > time.Minute {
						t.Fatal("that all have ended is never shown")
					}
				}
				before := c.statusWrites()
				var last time.Time
				for begun := time.Now(); len(pods) > 0 || c.statusOf("ns", "fw").State != frameworkv1.FrameworkCompleted; c.pass(tick) {
					if len(pods) > 0 && apiserver.Find[corev1.Pod](c.server, "ns", pods[0]).DeletionTimestamp != nil {
						c.letGo(pods[0])
						pods, last = pods[1:], time.Now()
					}
					if time.Since(begun) > time.Minute {
						t.Fatalf("it is never Completed; %d Pods are left", len(pods))
					}
				}
				if age := time.Since(last); age > most {
					t.Errorf("Completed %v after the last Pod was gone, want at most %v", age, most)
				}
				if writes := c.statusWrites() - before; writes > mostWrites {
					t.Errorf("%d writes of the status, want at most %d", writes, mostWrites)
				}
			})
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
			inCluster(t, func(t *testing.T, c *cluster) {
				f := newFramework(tasks)
				f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
				apiserver.Add(c.server, f)
				c.await(t, "all run", func() bool { return all(c.statusOf("ns", "fw"), isRunning) })
				for i := range tc.stuck {
					c.keep(fmt.Sprint("fw-w-", i))
				}
				c.ends = succeed
				c.runNodes(1)
				c.ends = never
				runsAgain := func(task *frameworkv1.TaskStatus) bool {
					return isRunning(task) && task.RetryPolicyStatus.TotalRetriedCount > 0
				}
				ended := time.Now()
				for countTasks(c.statusOf("ns", "fw"), runsAgain) < tasks-tc.stuck {
					c.pass(tick)
					c.runNodes(1)
					if time.Since(ended) > 5*time.Minute {
						t.Fatal("they never run again")
					}
				}
				if took := time.Since(ended); took > most {
					t.Errorf("they run again after %v, want at most %v", took, most)
				}
			})
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

// all says whether all tasks are so, of which a status tells.
func all(status *frameworkv1.FrameworkStatus, is func(*frameworkv1.TaskStatus) bool) bool {
	return status != nil && countTasks(status, func(task *frameworkv1.TaskStatus) bool { return !is(task) }) == 0
}

// countTasks is how many tasks are so.
func countTasks(status *frameworkv1.FrameworkStatus, is func(*frameworkv1.TaskStatus) bool) int {
	n := 0
	for _, task := range tasksOf(status) {
		if is(task) {
			n++
		}
	}
	return n
}
