// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// logs answers requests for logs.
func logs(answer func(pod, container string) *http.Response) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		path, isLog := strings.CutSuffix(r.URL.Path, "/log")
		if !isLog {
			return nil
		}
		return answer(path[strings.LastIndexByte(path, '/')+1:], r.URL.Query().Get("container"))
	}
}

func status(code int, reason, message string) *http.Response {
	return answered(code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message))
}

// TestLogsOfAnAttemptThatWaitsForItsRetryAreThoseOfTheLogStore: its Pods are gone, as those of one that has ended.
func TestLogsOfAnAttemptThatWaitsForItsRetryAreThoseOfTheLogStore(t *testing.T) {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "kept of "+r.URL.Path+"\n")
	}))
	defer store.Close()
	for _, state := range []frameworkv1.FrameworkState{frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkAttemptDeleting, frameworkv1.FrameworkCompleted} {
		u := someone(t)
		u.has(state, 1)
		u.sees(u.types("logs", "train"), 3, "the Pods are gone")
		u.sees(u.types("logs", "train", "--log-store", store.URL+"/{pod}"), 0, "[worker/1] kept of /train-worker-1", "[ps/0] kept of /train-ps-0")
	}
}

func TestLogsThatCannotBeShownEndWithAnError(t *testing.T) {
	store := httptest.NewServer(http.NotFoundHandler())
	defer store.Close()
	u := someone(t)
	fw := u.has(frameworkv1.FrameworkAttemptRunning, 1)
	u.hasPod(fw, "worker", 0, nil)
	u.hasPod(fw, "worker", 1, func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar"})
	})
	u.answers = logs(func(pod, container string) *http.Response {
		if container == "sidecar" && pod == "train-worker-0" {
			return status(http.StatusBadRequest, "BadRequest", "container sidecar is not valid for pod")
		}
		return answered(http.StatusOK, "text/plain", "hello of "+container+"\n")
	})
	u.sees(u.types("logs", "train"), 0, "[worker/0] hello of main", "[worker/1] hello of main")
	u.sees(u.types("logs", "train", "-c", "sidecar"), 0, "The log of worker/0 can't be shown", "[worker/1] hello of sidecar")
	for _, follow := range []string{"--follow=false", "--follow"} {
		u.sees(u.types("logs", "train", "-c", "typo", follow), 3, "there is no container typo", "there are main, sidecar")
		u.sees(u.types("logs", "train", "worker/999", follow), 3, "train has no task worker/999", "its role worker has 2")
	}
	u.sees(u.types("logs", "train", "worker/99", "--attempt", "0", "--log-store", store.URL+"/{pod}"), 1, "The log of worker/99 can't be shown", "no log could be shown")
	for _, flag := range []string{"--since=-1h", "--tail=-7", "--attempt=-3"} {
		u.sees(u.types("logs", "train", flag), 2, flag[:6], "hint: ")
	}
	u.answers = logs(func(string, string) *http.Response {
		return status(http.StatusBadRequest, "BadRequest", "container main is waiting to start")
	})
	u.sees(u.types("logs", "train"), 1, "The log of worker/0 can't be shown", "The log of worker/1 can't be shown", "no log could be shown")
}

// TestWhoMayNotReadLogsIsToldOnce, however many there are.
func TestWhoMayNotReadLogsIsToldOnce(t *testing.T) {
	u := someone(t)
	fw := u.has(frameworkv1.FrameworkAttemptRunning, 1)
	for i := range int32(100) {
		u.hasPod(fw, "worker", i, nil)
	}
	var asked atomic.Int32
	u.answers = logs(func(pod, _ string) *http.Response {
		asked.Add(1)
		return status(http.StatusForbidden, "Forbidden", `pods "`+pod+`" is forbidden: no pods/log`)
	})
	for _, follow := range []string{"--follow=false", "--follow"} {
		asked.Store(0)
		said := u.types("logs", "train", follow)
		u.sees(said, 4, "no pods/log")
		if lines := strings.Count(said.err, "\n"); lines != 2 { // The error and the hint.
			t.Errorf("%d lines are told:\n%s", lines, said.err)
		}
		if asked := asked.Load(); follow == "--follow=false" && asked > 2*maxStreams {
			t.Errorf("%d logs were asked for", asked)
		}
	}
}

// TestWhoFollowsAnAttemptIsDoneWhenItIsOver, though the Framework goes on.
func TestWhoFollowsAnAttemptIsDoneWhenItIsOver(t *testing.T) {
	u := someone(t)
	fw := u.has(frameworkv1.FrameworkAttemptRunning, 1)
	u.hasPod(fw, "worker", 0, nil)
	u.answers = logs(func(string, string) *http.Response {
		u.goes(frameworkv1.FrameworkAttemptCompleted)
		apiserver.Remove[corev1.Pod](u.api, "a", "train-worker-0")
		return answered(http.StatusOK, "text/plain", "bye\n")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	u.sees(u.typesUntil(ctx, "logs", "train", "--attempt=1", "-f"), 0, "bye")
}

// TestAContainerOfARoleWhosePodsAreYetToComeIsKnownToWhoFollows: it is in the spec. One of a role that is not asked for is not.
func TestAContainerOfARoleWhosePodsAreYetToComeIsKnownToWhoFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := someone(t)
		fw := failedTwice()
		fw.Namespace, fw.Status.State = "a", frameworkv1.FrameworkAttemptRunning
		fw.Spec.TaskRoles[1].Task.Pod.Raw = []byte(`{"spec":{"initContainers":[{"name":"fetch"}],"containers":[{"name":"serve"}]}}`)
		fw = apiserver.Add(u.api, fw)
		u.hasPod(fw, "worker", 0, nil)
		time.AfterFunc(time.Minute, func() {
			u.hasPod(fw, "ps", 0, func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "serve" })
		})
		u.answers = logs(func(pod, container string) *http.Response {
			if pod != "train-ps-0" {
				return status(http.StatusBadRequest, "BadRequest", "container "+container+" is not valid for pod")
			}
			u.goes(frameworkv1.FrameworkCompleted)
			apiserver.Remove[corev1.Pod](u.api, "a", pod)
			return answered(http.StatusOK, "text/plain", "hello of "+container+"\n")
		})
		u.sees(u.types("logs", "train", "worker", "-c", "serve", "-f"), 3, "there is no container serve", "there are main")
		u.sees(u.types("logs", "train", "-c", "typo", "-f"), 3, "there is no container typo", "there are fetch, main, serve")
		u.sees(u.types("logs", "train", "-c", "serve"), 3, "there is no container serve", "there are main")
		u.sees(u.types("logs", "train", "-c", "serve", "-f"), 0, "[ps/0] hello of serve")
	})
}
