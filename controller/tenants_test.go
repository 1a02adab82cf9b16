// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// inCluster runs a test in a cluster whose Pods run until they are told to end. The log
// goes nowhere.
func inCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, func(*cluster) {}, test)
}

// inClusterWith is inCluster with settings that are made before the controller begins.
func inClusterWith(t *testing.T, prepare func(c *cluster), test func(t *testing.T, c *cluster)) {
	// In the bubble nobody notices a controller that spins: no time passes.
	spins := time.AfterFunc(3*time.Minute, func() { panic("the controller spins, or the test takes for ever") })
	defer spins.Stop()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, rand.New(rand.NewPCG(0, 0)))
		c.ends = never
		c.config.LargeFrameworkCompression = ptr.To(false) // The book reads what is stored.
		prepare(c)
		c.startProgram()
		test(t, c)
		c.stopProgram()
		if !c.awaitPrograms(time.Minute) {
			t.Error("the controller does not end")
		}
	})
}

// never is how Pods end that run for ever, succeed and fail how those end that do so at
// once.
func never(*corev1.Pod) (int32, bool)   { return 0, false }
func succeed(*corev1.Pod) (int32, bool) { return 0, true }
func fail(*corev1.Pod) (int32, bool)    { return 1, true }

// add adds a Framework with a number of tasks in each role.
func (c *cluster) add(namespace, name string, roles map[string]int32) {
	apiserver.Add(c.server, job(namespace, name, roles))
}

// addGang adds one that is a gang.
func (c *cluster) addGang(namespace, name string, roles map[string]int32) {
	f := job(namespace, name, roles)
	f.Spec.Gang = &frameworkv1.GangSpec{}
	apiserver.Add(c.server, f)
}

// job is a Framework with a number of tasks in each role.
func job(namespace, name string, roles map[string]int32) *frameworkv1.Framework {
	f := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	f.Spec.ExecutionType = frameworkv1.ExecutionStart
	for _, role := range slices.Sorted(func(yield func(string) bool) {
		for role := range roles {
			if !yield(role) {
				return
			}
		}
	}) {
		f.Spec.TaskRoles = append(f.Spec.TaskRoles, frameworkv1.TaskRoleSpec{
			Name: role, TaskNumber: roles[role],
			FrameworkAttemptCompletionPolicy: frameworkv1.CompletionPolicySpec{MinFailedTaskCount: ptr.To[int32](1), MinSucceededTaskCount: ptr.To[int32](-1)},
			Task: frameworkv1.TaskSpec{
				RetryPolicy: frameworkv1.RetryPolicySpec{MaxRetryCount: 3},
				Pod:         runtime.RawExtension{Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`)},
			},
		})
	}
	return f
}

// podsOf are the names of the Pods of a role of a Framework.
func (c *cluster) podsOf(namespace, prefix string) []string {
	var names []string
	for _, pod := range apiserver.All[corev1.Pod](c.server, namespace) {
		if strings.HasPrefix(pod.Name, prefix) && pod.Labels[frameworkv1.KeyFrameworkName] != "" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// refuse has the creation of some Pods refused.
func (c *cluster) refuse(which func(name string) bool, with func(name string) error) {
	c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb == apiserver.Create && r.Resource == "pods" && which(r.Name) {
			return apiserver.Fault{Refusal: with(r.Name)}
		}
		return apiserver.Fault{}
	})
}

func quotaExceeded(name string) error { return apiserver.QuotaExceeded(name, "small") }

func everyPod(string) bool { return true }

// requests counts the requests about Frameworks since the journal was cleared.
func (c *cluster) requests() int {
	count := 0
	for _, entry := range c.server.Journal() {
		switch {
		case entry.Verb == apiserver.Watch, entry.Verb == apiserver.List && entry.Name == "", entry.Resource == "events":
		default:
			count++
		}
	}
	return count
}

func TestAnExhaustedQuotaCostsTwoRequestsAMinuteAndItsEndIsNoticed(t *testing.T) {
	for _, tasks := range []int32{4, 400} {
		t.Run(fmt.Sprint(tasks, " tasks"), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				used := 0
				c.refuse(everyPod, func(name string) error {
					used++ // Others start and end.
					return apiserver.QuotaExceeded(name, fmt.Sprintf("small, used: cpu=%dm", 1000+used))
				})
				c.add("ns", "fw", map[string]int32{"w": tasks})
				c.pass(10 * time.Minute)
				c.server.ClearJournal()
				lines := c.trace.linesOf("ns/fw")
				c.pass(10 * time.Minute)
				if got := c.requests(); got == 0 || got > 20 {
					t.Errorf("%d requests in ten minutes, want some, and 20 at most", got)
				}
				if got := c.trace.linesOf("ns/fw") - lines; got > 20 {
					t.Errorf("%d lines in the log in ten minutes, want 20 at most", got)
				}
				c.server.SetHook(nil)
				c.pass(time.Minute)
				if got := len(c.podsOf("ns", "fw-w-")); got != int(tasks) {
					t.Errorf("%d Pods a minute after there is room, want %d", got, tasks)
				}
			})
		})
	}
}

func TestARefusedRoleHoldsBackNoOther(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.refuse(func(name string) bool { return strings.HasPrefix(name, "fw-a-") },
			func(string) error { return apiserver.WebhookFailed("picky") })
		c.add("ns", "fw", map[string]int32{"a": 60, "b": 60})
		c.pass(2 * time.Second)
		if got := len(c.podsOf("ns", "fw-b-")); got != 60 {
			t.Errorf("role b has %d Pods, want 60", got)
		}
		c.pass(time.Minute)
		c.wantBlocked(t, frameworkv1.ReasonCreationRefused, "picky")
	})
}

// TestWhatIsForbiddenForAReasonOfOthersEndsNoAttempt: a ServiceAccount that the same apply creates
// later, or a right that an upgrade takes away for a moment.
func TestWhatIsForbiddenForAReasonOfOthersEndsNoAttempt(t *testing.T) {
	for name, refusal := range map[string]func(pod string) error{
		"its ServiceAccount is not there yet": apiserver.ServiceAccountMissing,
		"the controller has no right":         func(string) error { return apiserver.NoRight("create", "pods", "ns") },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.refuse(everyPod, refusal)
				c.add("ns", "fw", map[string]int32{"w": 4})
				c.pass(2 * time.Minute)
				c.wantBlocked(t, frameworkv1.ReasonCreationRefused, refusal("fw-w-0").Error())
				c.server.SetHook(nil)
				c.pass(time.Minute)
				if got := len(c.podsOf("ns", "fw-w-")); got != 4 {
					t.Errorf("%d Pods a minute after they are allowed, want 4", got)
				}
				if status := c.statusOf("ns", "fw"); status.RetryPolicyStatus.TotalRetriedCount != 0 {
					t.Errorf("the Framework was retried: %+v", status.RetryPolicyStatus)
				}
			})
		})
	}
}

// wantBlocked says why the Framework fw can't get Pods.
func (c *cluster) wantBlocked(t *testing.T, reason, message string) {
	t.Helper()
	condition := meta.FindStatusCondition(c.statusOf("ns", "fw").Conditions, frameworkv1.ConditionTasksBlocked)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != reason || !strings.Contains(condition.Message, message) {
		t.Errorf("the condition %s is %+v, want it True for %s, with %q in the message",
			frameworkv1.ConditionTasksBlocked, condition, reason, message)
	}
}

func TestATakenNameHoldsBackItsTaskOnly(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fw-w-0"}})
		c.add("ns", "fw", map[string]int32{"w": 60})
		c.pass(10 * time.Second)
		if got := len(c.podsOf("ns", "fw-w-")); got != 59 {
			t.Errorf("%d tasks have Pods, want all but the one whose name is taken", got)
		}
		c.pass(time.Minute)
		c.wantBlocked(t, frameworkv1.ReasonNameTaken, "fw-w-0")
		apiserver.Remove[corev1.Pod](c.server, "ns", "fw-w-0")
		c.pass(time.Minute)
		if got := len(c.podsOf("ns", "fw-w-")); got != 60 {
			t.Errorf("%d tasks have Pods a minute after the name is free, want all", got)
		}
		if meta.IsStatusConditionTrue(c.statusOf("ns", "fw").Conditions, frameworkv1.ConditionTasksBlocked) {
			t.Error("the condition is still there")
		}
	})
}

// TestASlowWriteHoldsUpNobodyElse has one worker, and an API server that is slow to
// write one status: other Frameworks are synced all the same, but the one that waits
// is not begun again before the answer.
func TestASlowWriteHoldsUpNobodyElse(t *testing.T) {
	quiet(t)
	oneWorker := func(c *cluster) { c.config.WorkerNumber = ptr.To[int32](1) }
	inClusterWith(t, oneWorker, func(t *testing.T, c *cluster) {
		writes := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if writesStatus(r) && r.Namespace == "slow" {
				writes++
				return apiserver.Fault{Before: 30 * time.Second}
			}
			return apiserver.Fault{}
		})
		c.add("slow", "fw", map[string]int32{"w": 1})
		c.pass(time.Second)
		if writes != 1 {
			t.Fatalf("%d writes have begun, want the one that gets no answer", writes)
		}
		apiserver.Change(c.server, "slow", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 2 })
		c.add("calm", "fw", map[string]int32{"w": 1})
		c.pass(5 * time.Second)
		if got := len(c.podsOf("calm", "fw-w-")); got != 1 {
			t.Errorf("the Framework that waits for nobody has %d Pods, want 1", got)
		}
		if writes != 1 {
			t.Errorf("%d writes of one Framework are under way, want 1", writes)
		}
		c.server.SetHook(nil)
		c.pass(time.Minute)
		if got := len(c.podsOf("slow", "fw-w-")); got != 2 {
			t.Errorf("the Framework that has waited has %d Pods, want 2", got)
		}
	})
}

// TestAPanicCostsOneFrameworkAWhile, and after that it goes on if the fault is gone.
func TestAPanicCostsOneFrameworkAWhile(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.faulty.Store(true)
		c.add("ns", "fw", map[string]int32{"w": 1})
		c.pass(time.Second)
		c.wantEvent(t, "fw", corev1.EventTypeWarning, "Panicked", faultOfEntropy)
		c.faulty.Store(false)
		c.add("ns", "other", map[string]int32{"w": 1})
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 2 })
		c.pass(pacing.MaxBackoff / 2)
		if c.statusOf("ns", "fw") != nil {
			t.Error("the Framework was synced again at once")
		}
		if got := len(c.podsOf("ns", "other-w-")); got != 1 {
			t.Errorf("the other Framework has %d Pods, want 1", got)
		}
		c.pass(pacing.MaxBackoff / 2)
		if got := len(c.podsOf("ns", "fw-w-")); got != 2 {
			t.Errorf("the Framework has %d Pods after %v, want 2", got, pacing.MaxBackoff)
		}
	})
}

// wantEvent says that the user was told something of a Framework.
func (c *cluster) wantEvent(t *testing.T, framework, kind, reason, message string) {
	t.Helper()
	var told []string
	for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
		if event.InvolvedObject.Name != framework {
			continue
		}
		if event.Type == kind && event.Reason == reason && strings.Contains(event.Message, message) {
			return
		}
		told = append(told, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Message))
	}
	t.Errorf("the user is told %q, want a %s for %s with %q", told, kind, reason, message)
}

func TestASlowWebhookHoldsUpNobodyElse(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Namespace == "slow" && r.Resource != "events" {
				return apiserver.Fault{Before: 30 * time.Second}
			}
			return apiserver.Fault{}
		})
		for i := range 100 {
			c.add("slow", fmt.Sprint("fw", i), map[string]int32{"w": 2})
		}
		c.pass(5 * time.Second)
		c.add("calm", "fw", map[string]int32{"w": 2})
		c.pass(time.Second)
		if got := len(c.podsOf("calm", "fw-w-")); got != 2 {
			t.Errorf("the Framework of the other namespace has %d Pods after a second, want 2", got)
		}
	})
}

// TestASlowNamespaceGoesOn, although more of its Frameworks wait for the API server
// than may at the same time.
func TestASlowNamespaceGoesOn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Create && r.Resource == "pods" {
				return apiserver.Fault{Before: 30 * time.Second}
			}
			return apiserver.Fault{}
		})
		for i := range 100 {
			c.add("ns", fmt.Sprint("fw", i), map[string]int32{"w": 1})
		}
		c.pass(4 * time.Minute)
		if got := len(c.podsOf("ns", "fw")); got != 100 {
			t.Errorf("%d of 100 Frameworks have their Pods", got)
		}
	})
}

func TestACrashCostsNoPod(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		uids := func() map[string]types.UID {
			uids := map[string]types.UID{}
			for _, pod := range apiserver.All[corev1.Pod](c.server, "ns") {
				uids[pod.Name] = pod.UID
			}
			return uids
		}
		c.add("ns", "fw", map[string]int32{"w": 20})
		for len(uids()) < 20 {
			c.pass(10 * time.Millisecond)
		}
		before := uids()
		for _, task := range c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
			if task.AttemptStatus.PodUID != nil {
				t.Fatal("a UID is written already: the crash would show nothing")
			}
		}
		c.killProgram()
		c.runNodes(1)
		c.runNodes(1)
		c.startProgram()
		c.pass(time.Minute)
		if diff := cmp.Diff(before, uids()); diff != "" {
			t.Errorf("the crash has changed Pods (-before +after):\n%s", diff)
		}
		if status := c.statusOf("ns", "fw"); status.State != frameworkv1.FrameworkAttemptRunning {
			t.Errorf("the Framework is %s, want it Running", status.State)
		}
	})
}

func TestAChangedLabelEndsNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": 20})
		c.pass(time.Minute)
		c.runNodes(1)
		c.runNodes(1)
		c.pass(time.Minute)
		apiserver.Change(c.server, "ns", "fw-attempt", func(m *corev1.ConfigMap) { delete(m.Labels, frameworkv1.KeyFrameworkName) })
		for i := range 15 {
			apiserver.Change(c.server, "ns", fmt.Sprint("fw-w-", i), func(p *corev1.Pod) { p.Labels[frameworkv1.KeyFrameworkName] = "another" })
			apiserver.Change(c.server, "ns", fmt.Sprint("fw-w-", i), func(p *corev1.Pod) { delete(p.Labels, frameworkv1.KeyFrameworkName) })
		}
		c.pass(5 * time.Minute)
		status := c.statusOf("ns", "fw")
		if status.State != frameworkv1.FrameworkAttemptRunning || status.AttemptStatus.ID != 0 {
			t.Errorf("the Framework is %s in attempt %d, want it to run in its first", status.State, status.AttemptStatus.ID)
		}
		for _, task := range status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
			if task.State != frameworkv1.TaskAttemptRunning || task.AttemptStatus.ID != 0 {
				t.Errorf("task %d is %s in attempt %d", task.Index, task.State, task.AttemptStatus.ID)
			}
		}
		// Their ends are noticed although no event tells of them.
		c.ends = succeed
		for range 10 {
			c.runNodes(1)
			c.pass(time.Minute)
		}
		if status := c.statusOf("ns", "fw"); status.State != frameworkv1.FrameworkCompleted {
			t.Errorf("the Framework is %s, want it Completed", status.State)
		}
	})
}

// TestPodsWithoutALabelAreFollowed although no event tells of any of them.
func TestPodsWithoutALabelAreFollowed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const tasks = 200
		c.add("ns", "fw", map[string]int32{"w": tasks})
		c.pass(time.Minute)
		c.runNodes(1)
		c.runNodes(1)
		c.pass(time.Minute)
		for i := range tasks {
			apiserver.Change(c.server, "ns", fmt.Sprint("fw-w-", i), func(p *corev1.Pod) { delete(p.Labels, frameworkv1.KeyFrameworkName) })
		}
		c.pass(5 * time.Minute)
		c.ends = func(*corev1.Pod) (int32, bool) { return 0, true }
		for range 10 {
			c.runNodes(1)
			c.pass(time.Minute)
		}
		if status := c.statusOf("ns", "fw"); status.State != frameworkv1.FrameworkCompleted || status.AttemptStatus.ID != 0 {
			t.Errorf("the Framework is %s in attempt %d, want it Completed in its first", status.State, status.AttemptStatus.ID)
		}
	})
}

func TestALargeScaleDownIsWrittenAFewTimes(t *testing.T) {
	const tasks = 1000
	inCluster(t, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": tasks})
		c.pass(time.Minute)
		c.server.ClearJournal()
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 0 })
		for len(c.podsOf("ns", "fw-")) > 0 { // They go one after the other.
			c.runNodes(30)
			c.pass(100 * time.Millisecond)
		}
		c.pass(time.Minute)
		writes := 0
		for _, entry := range c.server.Writes() {
			if entry.Subresource == "status" && entry.Resource == frameworkv1.FrameworkPlural {
				writes++
			}
		}
		if writes > 20 {
			t.Errorf("%d writes of the status, want 20 at most", writes)
		}
	})
}

func TestConditionsOfOthersSurvive(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": 2})
		c.pass(time.Minute)
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: "example.com/Billed", Status: metav1.ConditionTrue, Reason: "Paid"})
		})
		c.ends = succeed
		for range 10 {
			c.runNodes(1)
			c.pass(time.Minute)
		}
		status := c.statusOf("ns", "fw")
		if status.State != frameworkv1.FrameworkCompleted {
			t.Errorf("the Framework is %s, want it Completed", status.State)
		}
		if !meta.IsStatusConditionTrue(status.Conditions, "example.com/Billed") {
			t.Errorf("the conditions are %v, want the other controller's among them", status.Conditions)
		}
	})
}

// runWithoutRetries adds a Framework fw whose tasks run, and end once and for all.
func (c *cluster) runWithoutRetries(tasks int32) {
	f := job("ns", "fw", map[string]int32{"w": tasks})
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](-1)
	f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 0
	apiserver.Add(c.server, f)
	c.pass(10 * time.Second)
	c.runNodes(1)
	c.runNodes(1)
	c.pass(time.Minute)
}

// wantEnds says with which code the first tasks of the Framework fw ended.
func (c *cluster) wantEnds(t *testing.T, tasks int, code frameworkv1.CompletionCode) {
	t.Helper()
	for i := range tasks {
		if end := c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[0].TaskStatuses[i].AttemptStatus.CompletionStatus; end == nil || end.Code != code {
			t.Errorf("the end of task %d is %+v, want the code %d", i, end, code)
		}
	}
}

// TestAConditionOfAnotherCostsNoNews: what was seen and is not yet written is not
// forgotten because somebody else writes the status.
func TestAConditionOfAnotherCostsNoNews(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runWithoutRetries(100)
		const ended = 10
		for i := range ended { // The longer this takes, the longer news wait.
			c.ends = func(pod *corev1.Pod) (int32, bool) { return 7, pod.Name == fmt.Sprint("fw-w-", i) }
			c.runNodes(1)
			c.pass(150 * time.Millisecond)
		}
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: "example.com/Billed", Status: metav1.ConditionTrue, Reason: "Paid"})
		})
		for i := range ended {
			apiserver.Remove[corev1.Pod](c.server, "ns", fmt.Sprint("fw-w-", i))
		}
		c.pass(time.Minute)
		c.wantEnds(t, ended, 7)
		if conditions := c.statusOf("ns", "fw").Conditions; !meta.IsStatusConditionTrue(conditions, "example.com/Billed") {
			t.Errorf("the conditions are %v, want the other controller's among them", conditions)
		}
	})
}

func TestATimerIsNotLateBecauseOfARefusal(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.refuse(func(name string) bool { return strings.HasPrefix(name, "fw-a-") }, quotaExceeded)
		c.add("ns", "fw", map[string]int32{"a": 2, "b": 2})
		c.pass(30 * time.Minute) // The back-off of a is the longest by now.
		c.ends = func(pod *corev1.Pod) (int32, bool) { return 1, pod.Name == "fw-b-0" }
		// A task that fails at once is retried after a second or two, three times.
		for range 100 {
			c.runNodes(1)
			c.pass(200 * time.Millisecond)
		}
		if b := c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[1].TaskStatuses[0]; b.AttemptStatus.ID != 3 {
			t.Errorf("the task is in attempt %d (%s) after 20 seconds, want 3", b.AttemptStatus.ID, b.State)
		}
	})
}

func TestALookThatFailsIsTriedAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": 1})
		c.pass(time.Second)
		c.runNodes(1)
		c.runNodes(1)
		c.pass(time.Minute)
		apiserver.Change(c.server, "ns", "fw-w-0", func(p *corev1.Pod) { delete(p.Labels, frameworkv1.KeyFrameworkName) })
		c.pass(10 * time.Second)
		apiserver.Remove[corev1.Pod](c.server, "ns", "fw-w-0")
		refused := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Get && r.Resource == "pods" && refused == 0 {
				refused++
				return apiserver.Fault{Refusal: apiserver.Unavailable()}
			}
			return apiserver.Fault{}
		})
		c.pass(time.Minute)
		if task := c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]; task.AttemptStatus.ID != 1 || refused != 1 {
			t.Errorf("the task is in attempt %d (%s) after %d failed looks, want 1 after one", task.AttemptStatus.ID, task.State, refused)
		}
	})
}

func TestAPodGroupThatSomebodyUndoesIsWrittenOnceAMinute(t *testing.T) {
	undo := map[string]func(c *cluster){
		"deletes": func(c *cluster) {
			apiserver.Remove[schedulingv1alpha1.PodGroup](c.server, "ns", "fw-attempt")
		},
		"changes": func(c *cluster) {
			if group := apiserver.Find[schedulingv1alpha1.PodGroup](c.server, "ns", "fw-attempt"); group != nil && group.Spec.MinMember != 1 {
				apiserver.Change(c.server, "ns", "fw-attempt", func(group *schedulingv1alpha1.PodGroup) { group.Spec.MinMember = 1 })
			}
		},
	}
	for name, undo := range undo {
		t.Run("somebody who "+name+" it", func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.addGang("ns", "fw", map[string]int32{"w": 4})
				for i := range 20 * 60 * 5 {
					if i == 10*60*5 {
						c.server.ClearJournal()
					}
					c.pass(200 * time.Millisecond)
					undo(c)
				}
				writes := 0
				for _, entry := range c.server.Writes() {
					if entry.Resource == "podgroups" && entry.Subresource == "" && entry.Process != "" {
						writes++
					}
				}
				if writes == 0 || writes > 15 {
					t.Errorf("the PodGroup was written %d times in ten minutes, want some, and 15 at most", writes)
				}
				c.pass(time.Minute)
				group := apiserver.Find[schedulingv1alpha1.PodGroup](c.server, "ns", "fw-attempt")
				if group == nil || group.Spec.MinMember != 4 {
					t.Errorf("a minute after the last time the PodGroup is %+v, want one of 4 members", group)
				}
			})
		})
	}
}

func TestEachRefusedRoleHasItsTries(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.refuse(everyPod, quotaExceeded)
		c.add("ns", "fw", map[string]int32{"a": 50, "b": 50, "c": 50})
		c.pass(15 * time.Minute)
		c.refuse(func(name string) bool { return !strings.HasPrefix(name, "fw-c-") }, quotaExceeded)
		c.pass(3 * time.Minute)
		if got := len(c.podsOf("ns", "fw-c-")); got != 50 {
			t.Errorf("role c has %d Pods three minutes after there is room for it, want 50", got)
		}
	})
}

func TestDeletionsThatWereRefusedGoOnTogether(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const tasks = 300
		c.add("ns", "fw", map[string]int32{"w": tasks})
		c.pass(time.Minute)
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Delete && r.Resource == "pods" {
				return apiserver.Fault{Refusal: apiserver.WebhookFailed("picky")}
			}
			return apiserver.Fault{}
		})
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 0 })
		c.pass(10 * time.Minute)
		c.server.SetHook(nil)
		c.pass(time.Minute)
		for _, pod := range apiserver.All[corev1.Pod](c.server, "ns") {
			if pod.DeletionTimestamp == nil {
				t.Fatalf("%s is not deleted a minute after it may be", pod.Name)
			}
		}
	})
}

func TestOneHiccupHoldsUpNoRoleThatIsNotRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		refusePods := func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Create && strings.HasPrefix(r.Name, "fw-a-") {
				return apiserver.Fault{Refusal: quotaExceeded(r.Name)}
			}
			return apiserver.Fault{}
		}
		c.server.SetHook(refusePods)
		c.add("ns", "fw", map[string]int32{"a": 2, "b": 2})
		c.pass(10 * time.Minute)
		failed := false
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Subresource == "status" && !failed {
				failed = true
				return apiserver.Fault{Refusal: apiserver.Unavailable()}
			}
			return refusePods(r)
		})
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[1].TaskNumber = 5 })
		c.pass(3 * time.Second)
		if got := len(c.podsOf("ns", "fw-b-")); got != 5 || !failed {
			t.Errorf("role b has %d Pods three seconds after it was scaled to 5, and a write failed: %t", got, failed)
		}
	})
}

// TestALargeFrameworkBacksOffAsAWhole: its status is written by somebody else, and its
// cache does not show that.
func TestALargeFrameworkBacksOffAsAWhole(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": 2000})
		c.pass(time.Minute)
		c.program.process.Hold("frameworks")
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Status.StartTime = metav1.NewTime(time.Unix(1, 0)) })
		c.ends = func(pod *corev1.Pod) (int32, bool) { return 0, true }
		c.runNodes(1)
		c.runNodes(1)
		c.pass(10 * time.Minute)
		c.server.ClearJournal()
		lines := c.trace.linesOf("ns/fw")
		c.pass(10 * time.Minute)
		if got := c.requests(); got == 0 || got > 40 {
			t.Errorf("%d requests in ten minutes, want some, and 40 at most", got)
		}
		if got := c.trace.linesOf("ns/fw") - lines; got > 20 {
			t.Errorf("%d lines in the log in ten minutes, want 20 at most", got)
		}
		c.program.process.ReleaseAll("frameworks")
	})
}

func TestAStatusThatIsMendedIsNoticed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.program.process.Hold("frameworks") // It sees the Framework with the garbled status first.
		c.add("ns", "fw", map[string]int32{"w": 1})
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			f.Status = &frameworkv1.FrameworkStatus{State: "Lost", TransitionTime: metav1.Now()}
			f.Status.AttemptStatus.TaskRoleStatusesCompressed = []byte("no gzip")
		})
		c.program.process.ReleaseAll("frameworks")
		c.pass(time.Minute)
		if got := len(c.podsOf("ns", "fw-")); got != 0 {
			t.Fatalf("%d Pods of a Framework whose status can't be read", got)
		}
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Status = nil })
		c.pass(10 * time.Second)
		if got := len(c.podsOf("ns", "fw-")); got != 1 {
			t.Errorf("%d Pods after the status was mended, want 1", got)
		}
	})
}

// TestWritesWhoseAnswersAreLostCostNoNews: one of several writes that seemed to fail was
// stored, and not the last.
func TestWritesWhoseAnswersAreLostCostNoNews(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runWithoutRetries(5)
		c.program.process.Hold("frameworks")
		writes := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Subresource != "status" {
				return apiserver.Fault{}
			}
			if writes++; writes == 1 {
				return apiserver.Fault{LoseAnswer: true}
			} else if writes == 2 {
				return apiserver.Fault{Refusal: apiserver.Unavailable()}
			}
			return apiserver.Fault{}
		})
		for i := range 2 {
			c.ends = func(pod *corev1.Pod) (int32, bool) { return 7, pod.Name == fmt.Sprint("fw-w-", i) }
			c.runNodes(1)
			c.pass(20 * time.Millisecond)
			apiserver.Remove[corev1.Pod](c.server, "ns", fmt.Sprint("fw-w-", i))
		}
		c.pass(time.Minute)
		c.program.process.ReleaseAll("frameworks")
		c.pass(time.Minute)
		c.wantEnds(t, 2, 7)
		if writes < 3 {
			t.Errorf("%d writes of the status, want one whose answer is lost, one that fails and another", writes)
		}
	})
}

// TestADeletedFrameworkHasNoOtherAttempt although the cache does not show its deletion.
func TestADeletedFrameworkHasNoOtherAttempt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		f := job("ns", "fw", map[string]int32{"w": 1})
		f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
		f.Finalizers = []string{"example.com/keep"}
		apiserver.Add(c.server, f)
		c.pass(10 * time.Second)
		c.runNodes(1)
		c.runNodes(1)
		c.pass(time.Minute)
		c.program.process.Hold("frameworks")
		apiserver.DeleteObject[frameworkv1.Framework](c.server, "ns", "fw", metav1.DeleteOptions{})
		c.ends = func(*corev1.Pod) (int32, bool) { return 1, true }
		for range 20 {
			c.runNodes(1)
			c.pass(10 * time.Second)
		}
		if pods := c.podsOf("ns", "fw-"); len(pods) != 0 {
			t.Errorf("the deleted Framework has the Pods %v", pods)
		}
		if status := c.statusOf("ns", "fw"); status.AttemptStatus.ID > 1 {
			t.Errorf("the deleted Framework is in attempt %d", status.AttemptStatus.ID)
		}
	})
}

// TestAnOrphanedGangBeginsAnew although its PodGroup and Pods were left without an owner.
func TestAnOrphanedGangBeginsAnew(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		f := job("ns", "fw", map[string]int32{"w": 4})
		f.Spec.Gang = &frameworkv1.GangSpec{}
		f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
		f = apiserver.Add(c.server, f)
		c.pass(10 * time.Second)
		c.book.loosen(f.UID)
		apiserver.DeleteObject[corev1.ConfigMap](c.server, "ns", "fw-attempt", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)})
		for range 60 {
			c.runNodes(1)
			c.pass(2 * time.Second)
		}
		if status := c.statusOf("ns", "fw"); status.AttemptStatus.ID != 1 || status.State != frameworkv1.FrameworkAttemptRunning {
			t.Errorf("the Framework is %s in attempt %d, want it to run in its second", status.State, status.AttemptStatus.ID)
		}
	})
}

// TestOrphansWithoutALabelAreReplaced: the caches show none of them.
func TestOrphansWithoutALabelAreReplaced(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		f := job("ns", "fw", map[string]int32{"w": 2})
		f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
		f = apiserver.Add(c.server, f)
		c.pass(10 * time.Second)
		c.book.loosen(f.UID)
		c.killProgram()
		for i := range 2 {
			apiserver.Change(c.server, "ns", fmt.Sprint("fw-w-", i), func(pod *corev1.Pod) { delete(pod.Labels, frameworkv1.KeyFrameworkName) })
		}
		apiserver.DeleteObject[corev1.ConfigMap](c.server, "ns", "fw-attempt", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)})
		c.pass(10 * time.Second)
		c.startProgram()
		for range 60 {
			c.runNodes(1)
			c.pass(2 * time.Second)
		}
		if status := c.statusOf("ns", "fw"); status.AttemptStatus.ID != 1 || status.State != frameworkv1.FrameworkAttemptRunning {
			t.Errorf("the Framework is %s in attempt %d, want it to run in its second: %s", status.State, status.AttemptStatus.ID, brief(status))
		}
	})
}

func TestAPodGroupOfAnotherFrameworkIsLeftAlone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "fw-attempt", Annotations: map[string]string{frameworkv1.KeyFrameworkUID: "another"},
		}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 7}})
		c.addGang("ns", "fw", map[string]int32{"w": 4})
		c.pass(time.Minute)
		if group := apiserver.Find[schedulingv1alpha1.PodGroup](c.server, "ns", "fw-attempt"); group == nil || group.Spec.MinMember != 7 {
			t.Errorf("the PodGroup is %+v, want that of the other Framework", group)
		}
		c.wantBlocked(t, frameworkv1.ReasonNameTaken, "fw-attempt")
	})
}
