// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/testing/historylog"
)

func summaries(lines []historylog.Line) []string {
	var texts []string
	for _, line := range lines {
		texts = append(texts, line.Summary())
	}
	return texts
}

// logDecisions has the history tell of what is decided, and logEvents of what is seen.
func logDecisions(c *cluster) {
	on := ptr.To(true)
	c.config.LogObjectSnapshot.Framework = configv1alpha1.LogFrameworkSnapshot{OnFrameworkRetry: on, OnFrameworkDeletion: on}
	c.config.LogObjectSnapshot.Task = configv1alpha1.LogTaskSnapshot{OnTaskRetry: on, OnTaskDeletion: on}
	c.config.LogObjectSnapshot.Pod.OnPodDeletion = ptr.To(false)
}

func logEvents(c *cluster) {
	c.config.LogObjectSnapshot.Framework.OnFrameworkDeletion = ptr.To(true)
	c.config.LogObjectSnapshot.Pod.OnPodDeletion = ptr.To(true)
}

func TestHistoryOfDecisions(t *testing.T) {
	log := historylog.Capture(t)
	inClusterWith(t, logDecisions, func(t *testing.T, c *cluster) {
		f := newFramework(2)
		f.Spec.RetryPolicy.MaxRetryCount = 1
		f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
		apiserver.Add(c.server, f)
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 1 })
		c.await(t, "a task is gone", func() bool { return len(tasksOf(c.statusOf("ns", "fw"))) == 1 })
		c.ends = fail
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(retention + time.Minute)
		if apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw") != nil {
			t.Error("the Framework is still there after its retention")
		}
	})
	got := log.History(t)
	want := []string{
		"syncTaskState: Task will be deleted: OnTaskDeletion: frameworkcontroller.microsoft.com/v1 Task",
		"syncTaskState: Task will be retried: OnTaskRetry: frameworkcontroller.microsoft.com/v1 Task",
		"syncFrameworkState: Framework will be retried: OnFrameworkRetry: frameworkcontroller.microsoft.com/v1 Framework",
		"syncTaskState: Task will be retried: OnTaskRetry: frameworkcontroller.microsoft.com/v1 Task",
		"syncFrameworkState: Framework will be deleted: OnFrameworkDeletion: frameworkcontroller.microsoft.com/v1 Framework",
		"enqueueFrameworkObj: Framework Deleted: OnFrameworkDeletion: frameworkcontroller.microsoft.com/v1 Framework",
	}
	if diff := cmp.Diff(want, summaries(got)); diff != "" {
		t.Fatalf("unexpected history (-want +got):\n%s", diff)
	}
	retried := &frameworkv1.Framework{}
	if err := json.Unmarshal(got[2].Data, retried); err != nil {
		t.Fatal(err)
	}
	status := retried.Status
	if status.State != frameworkv1.FrameworkAttemptCompleted || status.AttemptStatus.ID != 0 ||
		status.AttemptStatus.CompletionStatus.Code != 1 || len(status.AttemptStatus.TaskRoleStatuses) != 1 {
		t.Errorf("the retried attempt is logged as %+v", status)
	}
}

// TestHistoryOverACrash lets the controller die after any write: whatever is
// overwritten was logged, by it or by its successor.
func TestHistoryOverACrash(t *testing.T) {
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			log := historylog.Capture(t)
			inClusterWith(t, logDecisions, func(t *testing.T, c *cluster) {
				c.ends = func(pod *corev1.Pod) (int32, bool) {
					if pod.Annotations[frameworkv1.KeyFrameworkAttemptID] == "0" {
						return 1, true
					}
					return 0, true
				}
				c.program.process.KillAfter(crashAfter)
				f := newFramework(2)
				f.Spec.RetryPolicy.MaxRetryCount = 1
				f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
				apiserver.Add(c.server, f)
				for round := range 60 {
					c.pass(time.Second)
					if round == 2 {
						apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 1 })
					}
					if c.program == nil {
						crashed = true
						c.startProgram()
					}
					c.runNodes(1)
				}
				if status := c.statusOf("ns", "fw"); status.State != frameworkv1.FrameworkCompleted {
					t.Errorf("the Framework is %s, want Completed", brief(status))
				}
			})
			logged := map[string]bool{}
			for _, line := range log.History(t) {
				logged[line.Trigger] = true
			}
			want := map[string]bool{"OnTaskDeletion": true, "OnTaskRetry": true, "OnFrameworkRetry": true}
			if diff := cmp.Diff(want, logged); diff != "" {
				t.Errorf("unexpected triggers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistoryOfEvents deletes Pods, of which one is nobody's, and a Framework.
func TestHistoryOfEvents(t *testing.T) {
	log := historylog.Capture(t)
	inClusterWith(t, logEvents, func(t *testing.T, c *cluster) {
		f := newFramework(1)
		f.Spec.TaskRoles[0].Task.Pod = runtime.RawExtension{
			Raw: []byte(`{"metadata":{"annotations":{"note":"100%d %s %!"}},"spec":{"containers":[{"name":"main","image":"busybox"}]}}`)}
		apiserver.Add(c.server, f)
		strangers := apiserver.Add(c.server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "stranger", Labels: map[string]string{frameworkv1.KeyFrameworkName: "fw"}}})
		apiserver.Add(c.server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "stranger", Labels: map[string]string{frameworkv1.KeyFrameworkName: "fw"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(strangers, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		}})
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		apiserver.Remove[corev1.Pod](c.server, "ns", "stranger")
		c.pass(time.Minute)
		if got := log.String(); got != "" && len(log.History(t)) > 0 {
			t.Errorf("the end of a stranger is logged: %s", got)
		}
		apiserver.Remove[corev1.Pod](c.server, "ns", "fw-w-0")
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		apiserver.Remove[frameworkv1.Framework](c.server, "ns", "fw")
		c.pass(time.Minute)
	})
	got := log.History(t)
	want := []string{
		"enqueueFrameworkObj: Framework Pod Deleted: OnPodDeletion: v1 Pod",
		"enqueueFrameworkObj: Framework Deleted: OnFrameworkDeletion: frameworkcontroller.microsoft.com/v1 Framework",
	}
	if diff := cmp.Diff(want, summaries(got)); diff != "" {
		t.Fatalf("unexpected history (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(got[0].Data, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Name != "fw-w-0" || pod.Annotations["note"] != "100%d %s %!" || pod.Spec.Containers[0].Image != "busybox" {
		t.Errorf("the Pod is logged as %s", got[0].Data)
	}
	if status, ok := got[1].Object["status"].(map[string]any); !ok || status["state"] != string(frameworkv1.FrameworkCompleted) {
		t.Errorf("the status is logged as %v", got[1].Object["status"])
	}
}

func TestADeletionThatIsRefusedIsInTheHistoryOnce(t *testing.T) {
	log := historylog.Capture(t)
	inClusterWith(t, logDecisions, func(t *testing.T, c *cluster) {
		c.ends = succeed
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "frameworks" && r.Verb == apiserver.Delete {
				return apiserver.Fault{Refusal: apiserver.WebhookFailed("keeper")}
			}
			return apiserver.Fault{}
		})
		apiserver.Add(c.server, newFramework(1))
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(retention + time.Hour)
		if apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw") == nil {
			t.Fatal("the Framework was deleted although that is refused")
		}
	})
	if got := summaries(log.History(t)); len(got) != 1 {
		t.Errorf("the history is %q, want one line", got)
	}
}

// TestNobodyForgesTheHistory has admission quote what a user has written, with line breaks, as a record of
// the history has it.
func TestNobodyForgesTheHistory(t *testing.T) {
	log := historylog.Capture(t)
	logged := func(c *cluster) { c.logger = klog.Background() }
	inClusterWith(t, logged, func(t *testing.T, c *cluster) {
		const record = `I1120 21:42:48.123456    4711 history.go:80] m: OnTaskRetry: ObjectSnapshot: {"kind":"Task"}`
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == "pods" && r.Verb == apiserver.Create {
				return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource("pods"), r.Name,
					errors.New("error looking up service account ns/x\n"+record+"\n: OnTaskRetry: ObjectSnapshot: {}\n\x1b[2J: serviceaccount not found"))}
			}
			return apiserver.Fault{}
		})
		apiserver.Add(c.server, newFramework(1))
		c.pass(time.Minute)
	})
	if text := log.String(); !strings.Contains(text, "error looking up service account") || strings.Contains(text, "\x1b") {
		t.Errorf("the log is %s", text)
	}
	if got := log.History(t); len(got) > 0 {
		t.Errorf("the history has %q", summaries(got))
	}
	for line := range strings.Lines(log.String()) {
		if !headerOfKlog.MatchString(line) {
			t.Errorf("a line that is no record: %s", line)
		}
	}
}

var headerOfKlog = regexp.MustCompile(`^[IWEF]\d{4} [\d:.]+ +\d+ \w+\.go:\d+\] `)
