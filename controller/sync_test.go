// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file lead one Framework through its life, and look at what the
// controller writes and when.

// newFramework makes the Framework fw with one role w.
func newFramework(tasks int32) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fw"},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: tasks,
				Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{
					Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`)}},
			}},
		},
	}
}

// await lets time pass, with all that the nodes do, until a condition is true.
func (c *cluster) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for begun := time.Now(); !condition(); c.runNodes(1) {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("%s: not within 10 minutes", what)
		}
		c.pass(time.Second)
	}
}

// awaitState waits until the Framework of a name is in a state.
func (c *cluster) awaitState(t *testing.T, name string, state frameworkv1.FrameworkState) {
	t.Helper()
	c.await(t, fmt.Sprintf("Framework %s is %s", name, state), func() bool {
		status := c.statusOf("ns", name)
		return status != nil && status.State == state
	})
}

// task is the status of the task w-0 of the Framework fw.
func (c *cluster) task() *frameworkv1.TaskStatus {
	c.t.Helper()
	status := c.statusOf("ns", "fw")
	if status == nil {
		c.t.Fatal("the Framework has no status")
	}
	return status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]
}

// writes are the writes of the journal that were carried out, but for those of events
// and of the PodGroup controller.
func (c *cluster) writes() []string {
	var writes []string
	for _, entry := range c.tries() {
		if entry.Code >= http.StatusOK && entry.Code < http.StatusMultipleChoices {
			writes = append(writes, describeWrite(entry))
		}
	}
	return writes
}

// tries are also the writes that were not carried out.
func (c *cluster) tries() []apiserver.Entry {
	return slices.DeleteFunc(c.server.Writes(), func(entry apiserver.Entry) bool {
		return entry.Resource == "events" || entry.Resource == "podgroups" && entry.Subresource == "status"
	})
}

func describeWrite(entry apiserver.Entry) string {
	what := entry.Resource
	if entry.Subresource != "" {
		what += "/" + entry.Subresource
	}
	return fmt.Sprintf("%s %s %s", entry.Verb, what, entry.Name)
}

const statusWrite = "update frameworks/status fw"

func (c *cluster) statusWrites() int {
	count := 0
	for _, write := range c.writes() {
		if write == statusWrite {
			count++
		}
	}
	return count
}

func TestWritesOfAnAttemptComeInOrder(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		f := newFramework(2)
		f.Spec.Gang = &frameworkv1.GangSpec{}
		apiserver.Add(c.server, f)
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		writes := c.writes()
		want := []string{
			statusWrite, "create configmaps fw-attempt", "create podgroups fw-attempt",
			"create pods fw-w-0", "create pods fw-w-1", statusWrite,
		}
		if diff := cmp.Diff(want, slices.Compact(slices.Clone(writes))[:len(want)]); diff != "" {
			t.Errorf("unexpected first writes (-want +got):\n%s", diff)
		}
		wantAll := []string{
			"create configmaps fw-attempt", "create podgroups fw-attempt", "create pods fw-w-0", "create pods fw-w-1",
			"delete pods fw-w-0", "delete pods fw-w-1", "delete configmaps fw-attempt",
		}
		got := slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write == statusWrite })
		if len(got) == len(wantAll) {
			slices.Sort(got[4:6]) // Pods are deleted side by side.
		}
		if diff := cmp.Diff(wantAll, got); diff != "" {
			t.Errorf("unexpected writes of other objects (-want +got):\n%s", diff)
		}
	})
}

// TestAGangWithTheLongestNameCompletes: its PodGroup has another name than its
// ConfigMap.
func TestAGangWithTheLongestNameCompletes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		f := newFramework(2)
		f.Name = strings.Repeat("x", validation.DNS1123LabelMaxLength)
		f.Spec.Gang = &frameworkv1.GangSpec{}
		apiserver.Add(c.server, f)
		c.awaitState(t, f.Name, frameworkv1.FrameworkCompleted)
		groups := slices.DeleteFunc(c.writes(), func(write string) bool { return !strings.Contains(write, "podgroups") })
		if want := []string{"create podgroups " + frameworkv1.PodGroupName(f.Name)}; !slices.Equal(groups, want) {
			t.Errorf("writes of PodGroups %q, want %q", groups, want)
		}
	})
}

// TestOwnersAreDeletedInTheForeground: they are there until all is gone that they own.
func TestOwnersAreDeletedInTheForeground(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		gone := map[string]int{}
		c.server.SetObserver(func(w *apiserver.Written) {
			c.book.observe(w)
			if !w.Removed() {
				return
			}
			var finalizers []string
			switch w.Resource {
			case "configmaps":
				finalizers = apiserver.Before[corev1.ConfigMap](w).Finalizers
			case "frameworks":
				finalizers = apiserver.Before[frameworkv1.Framework](w).Finalizers
			default:
				return
			}
			gone[w.Resource]++
			if !slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
				t.Errorf("%s %s goes with the finalizers %q, want %s", w.Resource, w.Key, finalizers, metav1.FinalizerDeleteDependents)
			}
		})
		apiserver.Add(c.server, newFramework(1))
		c.ends = succeed
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(retention + time.Minute)
		if diff := cmp.Diff(map[string]int{"configmaps": 1, "frameworks": 1}, gone); diff != "" {
			t.Errorf("unexpected removals (-want +got):\n%s", diff)
		}
	})
}

// TestADeletionSparesAStranger, who has taken the name when the request gets to the API
// server.
func TestADeletionSparesAStranger(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var stranger *corev1.Pod
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Delete && r.Resource == "pods" && stranger == nil {
				apiserver.Remove[corev1.Pod](c.server, "ns", r.Name)
				stranger = apiserver.Add(c.server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name}})
			}
			return apiserver.Fault{}
		})
		apiserver.Add(c.server, newFramework(1))
		c.ends = succeed
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		if stranger == nil {
			t.Fatal("no Pod was deleted")
		}
		if got := apiserver.Find[corev1.Pod](c.server, "ns", stranger.Name); got == nil || got.UID != stranger.UID || got.DeletionTimestamp != nil {
			t.Errorf("the stranger's Pod is %v", got)
		}
	})
}

// TestCrashBetweenAnyTwoWrites lets the controller crash after each of its writes
// in turn. A new one always brings the Framework to the same end.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	quiet(t)
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			inClusterWith(t, func(*cluster) {}, func(t *testing.T, c *cluster) {
				// The first attempt of w-0 fails and is retried; then all succeed.
				c.ends = func(pod *corev1.Pod) (int32, bool) {
					if pod.Name == "fw-w-0" && pod.Annotations[frameworkv1.KeyTaskAttemptID] == "0" {
						return 200, true
					}
					return 0, true
				}
				c.program.process.KillAfter(crashAfter)
				f := newFramework(2)
				f.Spec.TaskRoles[0].Task.RetryPolicy.FancyRetryPolicy = true
				f.Spec.Gang = &frameworkv1.GangSpec{}
				apiserver.Add(c.server, f)
				for range 60 {
					c.pass(time.Second)
					if c.program == nil {
						crashed = true
						c.startProgram()
					}
					c.runNodes(1)
				}
				status := c.statusOf("ns", "fw")
				if status.State != frameworkv1.FrameworkCompleted || status.AttemptStatus.CompletionStatus.Code != 0 {
					t.Fatalf("the Framework is %s, want Completed with 0", brief(status))
				}
				if status.AttemptStatus.ID != 0 {
					t.Errorf("attempt %d, want 0", status.AttemptStatus.ID)
				}
				tasks := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
				if tasks[0].AttemptStatus.ID != 1 || tasks[1].AttemptStatus.ID != 0 {
					t.Errorf("attempts %d and %d of the tasks, want 1 and 0", tasks[0].AttemptStatus.ID, tasks[1].AttemptStatus.ID)
				}
				pods, configMaps := apiserver.All[corev1.Pod](c.server, ""), apiserver.All[corev1.ConfigMap](c.server, "")
				if len(pods) > 0 || len(configMaps) > 0 {
					t.Errorf("%d Pods and %d ConfigMaps are left behind", len(pods), len(configMaps))
				}
			})
		})
		if !crashed && crashAfter < 10 {
			t.Errorf("a life without a crash has only %d writes", crashAfter)
		}
	}
}

// TestNothingHappensUntilTheStatusIsWritten refuses the first write of a life, and
// then the first after the Pod has ended.
func TestNothingHappensUntilTheStatusIsWritten(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		// refuse refuses to write the status of what happens then.
		refuse := func(happens func()) {
			t.Helper()
			c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
				if writesStatus(r) {
					return apiserver.Fault{Refusal: apiserver.WebhookFailed("tired.example.com")}
				}
				return apiserver.Fault{}
			})
			c.server.ClearJournal()
			happens()
			c.pass(5 * time.Second)
			tries := c.tries()
			for _, try := range tries {
				if describeWrite(try) != statusWrite {
					t.Errorf("something was done all the same: %s", try)
				}
			}
			if len(tries) < 2 {
				t.Errorf("%d writes of the status were tried, want some", len(tries))
			}
			c.server.SetHook(nil)
			c.server.ClearJournal()
			c.pass(time.Minute)
			if writes := c.writes(); len(writes) < 2 || writes[0] != statusWrite {
				t.Errorf("the writes are %q, want that of the status first", writes)
			}
		}
		refuse(func() { apiserver.Add(c.server, newFramework(1)) })
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		c.pass(time.Minute)
		c.ends = fail
		refuse(func() { c.runNodes(1) })
	})
}

func TestUserChangesTheSpecDuringAWrite(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newFramework(1))
		c.pass(time.Minute)
		changes := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if writesStatus(r) && changes == 0 {
				changes++
				apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.Description = "changed" })
			}
			return apiserver.Fault{}
		})
		c.server.ClearJournal()
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		tries := c.tries()
		if len(tries) < 2 || tries[0].Code != http.StatusConflict || tries[1].Code != http.StatusOK || tries[1].At.Sub(tries[0].At) > time.Second {
			t.Errorf("the writes are %v, want a conflict, and another write within a second", tries)
		}
	})
}

// TestAnAdmissionThatIsTakenBackDuringAWriteStartsNothing, though the watch does not show it yet: the read after the
// conflict does.
func TestAnAdmissionThatIsTakenBackDuringAWriteStartsNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.killProgram()
		c.config.Kueue.Enabled = ptr.To(true)
		c.startProgram()
		framework := newFramework(2)
		framework.Labels = map[string]string{frameworkv1.LabelQueue: "queue"}
		uid := apiserver.Add(c.server, framework).UID
		c.pass(time.Minute)
		withdrawn := false
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if writesStatus(r) && !withdrawn {
				withdrawn = true
				c.program.process.Hold("frameworks")
				apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Annotations = nil })
			}
			return apiserver.Fault{}
		})
		c.server.ClearJournal()
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			f.Annotations = map[string]string{frameworkv1.AnnotationAdmission: fmt.Sprintf(`{"framework": %q, "workload": "w"}`, uid)}
		})
		c.pass(time.Minute)
		if !withdrawn {
			t.Fatal("the admission was not seen")
		}
		for _, write := range c.tries() {
			if describeWrite(write) != statusWrite || write.Code != http.StatusConflict {
				t.Errorf("it has lost its admission, and this is written: %s", write)
			}
		}
	})
}

// TestNewLeaderWithAnOldCache starts a controller whose cache shows a Framework as
// it was before its predecessor's last write, which gets to the API server late.
func TestNewLeaderWithAnOldCache(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		first := c.program.name
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case !writesStatus(r):
				return apiserver.Fault{}
			case r.Process == first:
				return apiserver.Fault{Before: 2 * time.Second, Late: true}
			default:
				return apiserver.Fault{Before: 4 * time.Second}
			}
		})
		apiserver.Add(c.server, newFramework(1))
		c.pass(time.Second)
		c.killProgram()
		c.holdNext("frameworks")
		c.startProgram()
		c.pass(2 * time.Second)
		before := c.statusOf("ns", "fw")
		if before == nil {
			t.Fatal("the predecessor has written nothing")
		}
		c.server.ClearJournal()
		c.pass(time.Minute)
		if diff := cmp.Diff(before, c.statusOf("ns", "fw")); diff != "" {
			t.Errorf("the predecessor's status was overwritten (-before +after):\n%s", diff)
		}
		tries := c.tries()
		if len(tries) == 0 {
			t.Error("the new leader has tried nothing: it would show nothing")
		}
		for _, try := range tries {
			if describeWrite(try) != statusWrite || try.Code != http.StatusConflict {
				t.Errorf("the new leader has not noticed that its cache is behind: %s", try)
			}
		}
		for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
			if event.Type == corev1.EventTypeWarning { // Nothing is wrong with the Framework.
				t.Errorf("the user is told %s: %s", event.Reason, event.Message)
			}
		}
		c.server.SetHook(nil)
		c.program.process.ReleaseAll("frameworks")
		c.ends = succeed
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
	})
}

func TestFrameworkReplacedDuringAWrite(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		replaced := false
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if writesStatus(r) && !replaced {
				replaced = true
				c.program.process.Hold("frameworks")
				apiserver.Remove[frameworkv1.Framework](c.server, "ns", "fw")
				apiserver.Add(c.server, newFramework(1))
			}
			return apiserver.Fault{}
		})
		apiserver.Add(c.server, newFramework(1))
		c.pass(10 * time.Second)
		if !replaced || c.statusOf("ns", "fw") != nil || len(c.writes()) > 0 {
			t.Errorf("the writes are %q, and the status %s, want none", c.writes(), brief(c.statusOf("ns", "fw")))
		}
		c.program.process.ReleaseAll("frameworks")
		c.ends = succeed
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
	})
}

// TestFrameworkReplacedBetweenSyncs deletes a Framework that is under way and
// creates another one of its name, of which the controller sees only the result.
func TestFrameworkReplacedBetweenSyncs(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		f := apiserver.Add(c.server, newFramework(1))
		c.pass(time.Minute)
		old := c.statusOf("ns", "fw").AttemptStatus.ConfigMapUID
		if old == nil {
			t.Fatal("the Framework has no ConfigMap")
		}
		for _, resource := range watched {
			c.program.process.Hold(resource)
		}
		c.book.loosen(f.UID) // Its Pod goes after it.
		apiserver.Remove[frameworkv1.Framework](c.server, "ns", "fw")
		c.pass(10 * time.Second)
		if pods := c.podsOf("ns", "fw-w-"); len(pods) > 0 {
			t.Fatalf("the Pods %q are left", pods)
		}
		apiserver.Add(c.server, newFramework(1))
		for _, resource := range watched {
			c.program.process.ExpireWatches(resource)
			c.program.process.ReleaseAll(resource)
		}
		c.ends = succeed
		c.await(t, "the new Framework is Completed", func() bool {
			status := c.statusOf("ns", "fw")
			if status != nil && ptr.Equal(status.AttemptStatus.ConfigMapUID, old) {
				t.Fatal("the new Framework has the ConfigMap of the old one")
			}
			return status != nil && status.State == frameworkv1.FrameworkCompleted
		})
	})
}

// TestAPodThatIsNeverShownIsFound never shows the controller the Pod that it has
// created: at last it looks by itself, and follows the Pod from then on.
func TestAPodThatIsNeverShownIsFound(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.program.process.Hold("pods")
		apiserver.Add(c.server, newFramework(1))
		c.pass(10 * time.Minute)
		pod := apiserver.Find[corev1.Pod](c.server, "ns", "fw-w-0")
		if pod == nil {
			t.Fatal("there is no Pod")
		}
		if task := c.task(); task.State != frameworkv1.TaskAttemptPreparing || *task.AttemptStatus.PodUID != pod.UID {
			t.Errorf("the task is %s, want it Preparing, with its Pod", task.State)
		}
		c.runNodes(1)
		c.runNodes(1)
		c.pass(time.Minute)
		if task := c.task(); task.State != frameworkv1.TaskAttemptRunning {
			t.Errorf("the task is %s, want it Running", task.State)
		}
		apiserver.Remove[corev1.Pod](c.server, "ns", "fw-w-0")
		c.pass(time.Minute)
		if task := c.task(); task.State != frameworkv1.TaskCompleted {
			t.Errorf("the task is %s, want Completed once its Pod is gone", task.State)
		}
	})
}

func TestStatusThatIsTooLargeIsWrittenShortened(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if writesStatus(r) && len(r.Body) > 5120 {
				return apiserver.Fault{Refusal: apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large")}
			}
			return apiserver.Fault{}
		})
		apiserver.Add(c.server, newFramework(1))
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		apiserver.Change(c.server, "ns", "fw-w-0", func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Message = corev1.PodFailed, strings.Repeat("long ", 2000)
		})
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		if conditions := c.statusOf("ns", "fw").Conditions; !meta.IsStatusConditionTrue(conditions, frameworkv1.ConditionStatusTooLarge) {
			t.Errorf("no condition %s in %v", frameworkv1.ConditionStatusTooLarge, conditions)
		}
		c.wantEvent(t, "fw", corev1.EventTypeWarning, "StatusTooLarge", "cut")
	})
}

func TestFrameworkThatDoesNotDecodeIsToldAndLeftAlone(t *testing.T) {
	var bomb bytes.Buffer
	writer := gzip.NewWriter(&bomb)
	if _, err := io.WriteString(writer, "[{}"+strings.Repeat(",{}", 1<<20)+"]"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"roles that unfold to too much": `"spec":{},"status":{"state":"AttemptRunning",
			"attemptStatus":{"taskRoleStatusesCompressed":"` + base64.StdEncoding.EncodeToString(bomb.Bytes()) + `"}}`,
		"spec":   `"spec":{"taskRoles":"many"}`,
		"status": `"spec":{},"status":{"state":"Completed"}`,
		"tasks, which have no schema": `"spec":{},"status":{"state":"AttemptRunning",
			"attemptStatus":{"taskRoleStatuses":[{"name":"worker","taskStatuses":"none"}]}}`,
	}
	for name, stored := range tests {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.server.SetObserver(nil) // The book can't read it either.
				poison := &unstructured.Unstructured{}
				if err := json.Unmarshal(fmt.Appendf(nil,
					`{"apiVersion":"frameworkcontroller.microsoft.com/v1","kind":"Framework","metadata":{"namespace":"ns","name":"fw"},%s}`, stored), poison); err != nil {
					t.Fatal(err)
				}
				apiserver.Add(c.server, poison)
				c.pass(time.Minute)
				c.wantEvent(t, "fw", corev1.EventTypeWarning, "Undecodable", "")
				if got := c.program.frameworks.Undecodable(); got != 1 {
					t.Errorf("%d undecodable Frameworks are counted, want 1", got)
				}
				c.pass(time.Hour)
				if tries := c.tries(); len(tries) > 0 {
					t.Errorf("something was written: %v", tries)
				}
				if got := c.trace.linesOf("ns/fw"); got > 0 {
					t.Errorf("%d lines in the log, want none: trying again does not help", got)
				}
			})
		})
	}
}

// TestWritesDoNotGrowWithTheTasks leads large Frameworks through their lives, in
// which Pods change one after another at the rate at which an API server of a
// small machine takes them.
func TestWritesDoNotGrowWithTheTasks(t *testing.T) {
	const most = 40
	writes := map[int]int{}
	for _, tasks := range []int{1000, 4000} {
		inCluster(t, func(t *testing.T, c *cluster) { writes[tasks] = leadLargeFramework(t, c, tasks) })
		if writes[tasks] > most {
			t.Errorf("%d tasks take %d writes of the status, want at most %d", tasks, writes[tasks], most)
		}
	}
	t.Logf("writes by tasks: %v", writes)
	if growth := float64(writes[4000]) / float64(writes[1000]); math.Abs(growth-1) > 0.2 {
		t.Errorf("four times the tasks take %.2f times the writes: %v", growth, writes)
	}
}

func leadLargeFramework(t *testing.T, c *cluster, tasks int) int {
	t.Helper()
	const podsPerSecond = 250
	const tick = 100 * time.Millisecond
	perTick := int(podsPerSecond * tick / time.Second)
	changes := &changes{}
	c.server.SetObserver(changes.see) // The book takes its time for thousands of Pods.
	apiserver.Add(c.server, newFramework(int32(tasks)))
	for begun := time.Now(); !changes.completed; c.pass(tick) {
		changes.take(c, perTick)
		if time.Since(begun) > 30*time.Minute {
			t.Fatalf("the Framework is %s, want Completed", brief(c.statusOf("ns", "fw")))
		}
	}
	return c.statusWrites()
}

// changes are the Pods' next steps, in the order in which they are due.
type changes struct {
	starts, ends, removals []*corev1.Pod
	// completed says that the Framework is.
	completed bool
}

// see is an apiserver.Observer that notes the next step of a Pod.
func (c *changes) see(w *apiserver.Written) {
	switch {
	case w.Resource == "frameworks":
		f := apiserver.After[frameworkv1.Framework](w)
		c.completed = f != nil && f.Status != nil && f.Status.State == frameworkv1.FrameworkCompleted
		return
	case w.Resource != "pods" || w.Removed():
		return
	}
	before, pod := apiserver.Before[corev1.Pod](w), apiserver.After[corev1.Pod](w)
	switch {
	case before == nil:
		c.starts = append(c.starts, pod)
	case before.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
		c.removals = append(c.removals, pod)
	case before.Status.Phase == corev1.PodPending && pod.Status.Phase == corev1.PodRunning:
		c.ends = append(c.ends, pod)
	}
}

// take lets a number of Pods take their next step: start, end a minute after their
// creation, and go.
func (c *changes) take(in *cluster, count int) {
	for range count {
		switch {
		case len(c.removals) > 0:
			in.letGo(c.removals[0].Name)
			c.removals = c.removals[1:]
		case len(c.ends) > 0 && time.Since(c.ends[0].CreationTimestamp.Time) > time.Minute:
			in.step(c.ends[0].Name, corev1.PodSucceeded)
			c.ends = c.ends[1:]
		case len(c.starts) > 0:
			in.keep(c.starts[0].Name)
			in.step(c.starts[0].Name, corev1.PodRunning)
			c.starts = c.starts[1:]
		}
	}
}

// step has a Pod of the Framework fw take its next step, if it is not deleted.
func (c *cluster) step(name string, phase corev1.PodPhase) {
	apiserver.ChangeAny(c.server, "ns", name, func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.Phase = nodeNames[0], phase
	})
}

// keep has somebody keep a Pod when it is deleted, until letGo.
func (c *cluster) keep(name string) {
	apiserver.ChangeAny(c.server, "ns", name, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/keeper"} })
}

func (c *cluster) letGo(name string) {
	apiserver.ChangeAny(c.server, "ns", name, func(pod *corev1.Pod) { pod.Finalizers = nil })
}
