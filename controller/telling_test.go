// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file hold what users are told of a Framework: each turn in its life, and no
// more than they can read.

// toldOf counts the events of a Framework by reason.
func (c *cluster) toldOf(framework string) map[string]int32 { return c.toldIn("ns", framework) }

func (c *cluster) toldIn(namespace, framework string) map[string]int32 {
	told := map[string]int32{}
	for _, event := range apiserver.All[corev1.Event](c.server, namespace) {
		if event.InvolvedObject.Name == framework {
			told[event.Reason] += max(1, event.Count)
		}
	}
	return told
}

// TestALargeFrameworkIsToldInAFewWords: a thousand tasks that fail are one event and one line.
func TestALargeFrameworkIsToldInAFewWords(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		f := newFramework(1000)
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1000)
		apiserver.Add(c.server, f)
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		c.ends = fail
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(time.Minute)
		// Several of them come in one nanosecond.
		want := map[string]int32{"AttemptStarted": 1, "AttemptRunning": 1, "TaskFailed": 1, "AttemptCompleted": 1, "Completed": 1}
		if diff := cmp.Diff(want, c.toldOf("fw")); diff != "" {
			t.Errorf("unexpected events (-want +got):\n%s", diff)
		}
		c.wantEvent(t, "fw", corev1.EventTypeWarning, "TaskFailed", "(and 999 more failed)")
		if got := c.trace.linesOf("ns/fw"); got != 5 {
			t.Errorf("%d lines in the log, want one for each event", got)
		}
	})
}

// TestEventsOfANamespaceWaitForNoOthers: a webhook on events hangs in one namespace, and an API server
// that breaks off is asked again.
func TestEventsOfANamespaceWaitForNoOthers(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		broken := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case r.Resource == "events" && r.Namespace == "slow":
				return apiserver.Fault{Before: 30 * time.Second}
			case r.Resource == "events" && r.Namespace == "broken" && broken < 3:
				broken++
				return apiserver.Fault{Refusal: errors.New("connection reset")}
			default:
				return apiserver.Fault{}
			}
		})
		for i := range 40 {
			c.add("slow", fmt.Sprint("fw-", i), map[string]int32{"w": 1})
		}
		c.add("broken", "fw", map[string]int32{"w": 1})
		c.pass(2 * time.Second)
		c.add("ns", "fw", map[string]int32{"w": 1})
		c.pass(5 * time.Second)
		if c.toldOf("fw")["AttemptStarted"] != 1 {
			t.Errorf("five seconds after its start the events %v of a Framework are told", c.toldOf("fw"))
		}
		c.pass(time.Minute)
		if c.toldIn("broken", "fw")["AttemptStarted"] != 1 {
			t.Errorf("a minute later the events %v of one whose connection broke are told", c.toldIn("broken", "fw"))
		}
		if got := len(apiserver.All[corev1.Event](c.server, "slow")); got != 2 {
			t.Errorf("where each event takes 30 seconds, %d were told in a minute", got)
		}
		c.server.SetHook(nil)
	})
}

// TestEventsOutliveAnAPIServerThatRefusesThemForAWhile: it is overloaded, or begins, or a webhook of its is away.
func TestEventsOutliveAnAPIServerThatRefusesThemForAWhile(t *testing.T) {
	for name, refusal := range map[string]error{
		"it is overloaded":          apiserver.TooManyRequests(0),
		"its storage is away":       apiserver.Unavailable(),
		"a webhook does not answer": apiserver.WebhookFailed("events.example.com"),
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Resource == "events" {
						return apiserver.Fault{Refusal: refusal}
					}
					return apiserver.Fault{}
				})
				c.add("ns", "fw", map[string]int32{"w": 1})
				c.pass(30 * time.Second)
				c.server.SetHook(nil)
				c.pass(time.Minute)
				if c.toldOf("fw")["AttemptStarted"] != 1 {
					t.Errorf("the events %v of a Framework are told", c.toldOf("fw"))
				}
			})
		})
	}
}

// TestAFrameworkThatSucceedsIsFourLinesOfTheLog, by default.
func TestAFrameworkThatSucceedsIsFourLinesOfTheLog(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		apiserver.Add(c.server, newFramework(10))
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(time.Minute)
		if got := c.trace.linesOf("ns/fw"); got != 4 {
			t.Errorf("%d lines in the log, want 4", got)
		}
	})
}

// TestFailuresOfTasksDrownNoOtherNews: tasks that fail one after the other are told for a while,
// then in sums, and the end of the Framework is told all the same.
func TestFailuresOfTasksDrownNoOtherNews(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const tasks = 60
		f := newFramework(tasks)
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](tasks)
		apiserver.Add(c.server, f)
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		failing := ""
		c.ends = func(pod *corev1.Pod) (int32, bool) { return 1, pod.Name == failing }
		for i := range tasks {
			failing = fmt.Sprint("fw-w-", i)
			c.runNodes(1)
			c.pass(2 * time.Second)
		}
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(time.Minute)
		c.wantEvent(t, "fw", corev1.EventTypeWarning, "AttemptCompleted", "")
		c.wantEvent(t, "fw", corev1.EventTypeWarning, "Completed", "")
		if got := c.toldOf("fw")["TaskFailed"]; got < 10 || got > 30 {
			t.Errorf("%d failures of tasks were told, want some, and 30 at most of %d", got, tasks)
		}
		sums := false
		for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
			sums = sums || event.Reason == "TaskFailed" && strings.Contains(event.Message, "more of TaskFailed were left out before")
		}
		if !sums {
			t.Error("no event says how many others were left out")
		}
		if got := c.trace.linesOf("ns/fw"); got > 40 {
			t.Errorf("%d lines in the log of %d failures, want 40 at most", got, tasks)
		}
	})
}
