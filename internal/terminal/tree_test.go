// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

var update = flag.Bool("update", false, "write what is drawn to testdata")

// now is the time at which the trees of the tests are drawn.
var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func ptr[T any](v T) *T { return &v }

// framework is one of roles with tasks that run.
func framework(tasks map[string]int32, roles ...string) *frameworkv1.Framework {
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "training", UID: "u", CreationTimestamp: ago(time.Hour)}}
	fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning, TransitionTime: ago(time.Minute), Tasks: &frameworkv1.TaskCounts{}}
	for _, name := range roles {
		fw.Spec.TaskRoles = append(fw.Spec.TaskRoles, frameworkv1.TaskRoleSpec{Name: name, TaskNumber: tasks[name]})
		role := &frameworkv1.TaskRoleStatus{Name: name}
		for i := range tasks[name] {
			role.TaskStatuses = append(role.TaskStatuses, &frameworkv1.TaskStatus{
				Index: i, State: frameworkv1.TaskAttemptRunning, TransitionTime: ago(time.Minute),
				AttemptStatus: frameworkv1.TaskAttemptStatus{
					PodName: frameworkv1.PodName("training", name, i), PodUID: ptr(types.UID(fmt.Sprintf("%s-%d", name, i))), PodNodeName: ptr(fmt.Sprintf("node-%d", i)),
				},
			})
		}
		fw.Status.AttemptStatus.TaskRoleStatuses = append(fw.Status.AttemptStatus.TaskRoleStatuses, role)
		fw.Status.Tasks.Total += tasks[name]
		fw.Status.Tasks.Running += tasks[name]
	}
	return fw
}

func task(fw *frameworkv1.Framework, role, index int) *frameworkv1.TaskStatus {
	return fw.Status.AttemptStatus.TaskRoleStatuses[role].TaskStatuses[index]
}

func end(code frameworkv1.CompletionCode, phrase string) *frameworkv1.TaskAttemptCompletionStatus {
	return &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{Code: code, Phrase: phrase, Type: frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeFailed}}}
}

func draw(o view.Objects) string {
	return Style{}.Tree(view.OfFramework(o, now), now)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got; -update writes it)\n%s", diff)
	}
}

func TestATreeShowsWhatEachTaskDoes(t *testing.T) {
	fw := framework(map[string]int32{"ps": 1, "worker": 4}, "ps", "worker")
	fw.Status.AttemptStatus.ID = 2
	failed := task(fw, 1, 1)
	failed.State, failed.TransitionTime = frameworkv1.TaskCompleted, ago(10*time.Second)
	failed.AttemptStatus.CompletionStatus = end(137, "ContainerOOMKilled")
	failed.RetryPolicyStatus.TotalRetriedCount = 1
	preparing := task(fw, 1, 2)
	preparing.State, preparing.AttemptStatus.PodNodeName = frameworkv1.TaskAttemptPreparing, nil
	preempted := task(fw, 1, 3)
	preempted.State = frameworkv1.TaskAttemptCompleted
	preempted.AttemptStatus.CompletionStatus = end(frameworkv1.CodePodExternalDeleted, "PodExternalDeleted")
	preempted.AttemptStatus.CompletionStatus.Disruption = frameworkv1.DisruptionPreempted
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "training-worker-2", UID: "worker-2", Annotations: map[string]string{frameworkv1.KeyFrameworkUID: "u"}}}
	pod.Spec.NodeName = "node-7"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	golden(t, "tasks", draw(view.Objects{Framework: fw, Pods: []corev1.Pod{pod}, Unread: []string{"Events can't be shown: you may not read them."}}))
}

func TestATreeShowsWhatAGangWaitsFor(t *testing.T) {
	fw := framework(map[string]int32{"worker": 2}, "worker")
	fw.Status.State, fw.Status.Tasks.Running = frameworkv1.FrameworkAttemptPreparing, 0
	for i := range 2 {
		task(fw, 0, i).State, task(fw, 0, i).AttemptStatus.PodNodeName = frameworkv1.TaskAttemptPreparing, nil
		task(fw, 0, i).AttemptStatus.Waiting = &frameworkv1.TaskWaiting{Reason: "Unschedulable", Since: ago(30 * time.Second)}
	}
	fw.Status.AttemptStatus.PodGroup = &frameworkv1.AttemptPodGroupStatus{Name: "training-attempt", UID: "g"}
	fw.Status.Conditions = []metav1.Condition{{Type: frameworkv1.ConditionGangScheduled, Status: metav1.ConditionFalse, Reason: "NotEnoughResources"}}
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "training-attempt", UID: "g"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 2}}
	group.Status = schedulingv1alpha1.PodGroupStatus{Phase: schedulingv1alpha1.PodGroupPending, Members: 2, Conditions: []schedulingv1alpha1.PodGroupCondition{{
		Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: "NotEnoughResources", Message: "there is room for 1 of 2 members", LastTransitionTime: ago(time.Minute),
	}}}
	golden(t, "gang", draw(view.Objects{Framework: fw, PodGroup: group}))

	// A group of the name that somebody else made says nothing of this one.
	group.UID = "other"
	if got := draw(view.Objects{Framework: fw, PodGroup: group}); strings.Contains(got, "there is room for 1 of 2") {
		t.Errorf("it tells what the PodGroup of somebody else waits for:\n%s", got)
	}
}

func TestATreeOfAFrameworkThatNobodyHasSeenYetSaysSo(t *testing.T) {
	fw := framework(map[string]int32{"worker": 2}, "worker")
	fw.Status = nil
	golden(t, "unseen", draw(view.Objects{Framework: fw}))
}

func TestTenThousandTasksAreAFewRows(t *testing.T) {
	fw := framework(map[string]int32{"worker": 10_000}, "worker")
	for i := range 10_000 {
		switch {
		case i%1000 == 7:
			task(fw, 0, i).State = frameworkv1.TaskCompleted
			task(fw, 0, i).AttemptStatus.CompletionStatus = end(1, "ContainerUnrecognizedFailed")
		case i >= 9000:
			task(fw, 0, i).State = frameworkv1.TaskAttemptPreparing
		}
	}
	golden(t, "many", draw(view.Objects{Framework: fw}))

	// As many kinds of tasks as there are tasks.
	for i := range 10_000 {
		task(fw, 0, i).State = frameworkv1.TaskCompleted
		task(fw, 0, i).AttemptStatus.CompletionStatus = end(frameworkv1.CompletionCode(i+1000), "")
	}
	begun := time.Now()
	got := draw(view.Objects{Framework: fw})
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("drawing it took %s", took)
	}
	if lines := strings.Count(got, "\n"); lines > view.MaxTaskRows+3 {
		t.Errorf("the tree has %d lines:\n%s", lines, got)
	}
	if !strings.Contains(got, "(9981 tasks)") {
		t.Errorf("the tasks beyond the rows are not counted:\n%s", got)
	}
}

func TestTextsOfOthersDontReachTheTerminalAsCommands(t *testing.T) {
	hostile := "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u0085\u200b\r\nroot# \xff\u2028"
	fw := framework(map[string]int32{"worker": 1}, "worker")
	fw.Status.State = frameworkv1.FrameworkState(hostile)
	task(fw, 0, 0).State = frameworkv1.TaskState(hostile)
	task(fw, 0, 0).AttemptStatus.PodNodeName = &hostile
	task(fw, 0, 0).AttemptStatus.Waiting = &frameworkv1.TaskWaiting{Reason: hostile}
	fw.Spec.TaskRoles[0].Name, fw.Status.AttemptStatus.TaskRoleStatuses[0].Name, fw.Name = hostile, hostile, hostile
	fw.Status.AttemptStatus.PodGroup = &frameworkv1.AttemptPodGroupStatus{Name: hostile, Unschedulable: &frameworkv1.AttemptUnschedulable{Reason: hostile, Message: hostile}}
	fw.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{Phrase: hostile, Disruption: frameworkv1.Disruption(hostile)}}
	fw.Status.Waiting = []frameworkv1.WaitingCount{{Reason: hostile}}
	tree := view.OfFramework(view.Objects{Framework: fw, Unread: []string{hostile}}, now)
	table := Style{}.Jobs([]view.Row{tree.Row}, now, true, true)
	for _, got := range []string{Style{}.Tree(tree, now), table, Clean(hostile)} {
		for _, r := range got {
			if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Errorf("%q reaches the terminal in %q", r, got)
			}
		}
	}
	if lines := strings.Count(table, "\n"); lines != 2 {
		t.Errorf("a name with a line break makes %d lines of a table of 2", lines)
	}
}

func TestLinesAreCutToTheWidthOfTheTerminal(t *testing.T) {
	coloured := Style{Colours: true}.Paint(Red, "abcdef")
	for line, want := range map[string]string{
		"abcdef":   "abc…",
		"abcd":     "abcd",
		"äöüß":     "äöüß",
		"äöüßa":    "äöü…",
		coloured:   "\x1b[31mabc…\x1b[0m",
		"":         "",
		"ab\x1b[0": "ab\x1b…",
	} {
		if got := Fit(line, 4); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestWithoutColoursNoLineHasAnEscapeSequence(t *testing.T) {
	tree := view.OfFramework(view.Objects{Framework: framework(map[string]int32{"worker": 3}, "worker")}, now)
	if got := (Style{}).Tree(tree, now); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if got := (Style{Colours: true}).Tree(tree, now); !strings.Contains(got, "\x1b[32mRunning\x1b[0m") {
		t.Errorf("a running task is not green: %q", got)
	}
}

// TestTheHistoryShowsAllThatIsCounted: what is counted is for people.
func TestTheHistoryShowsAllThatIsCounted(t *testing.T) {
	var counts frameworkv1.TaskAttemptCounts
	fields := reflect.ValueOf(&counts).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(7001 + i))
	}
	shown := Style{}.Past([]view.PastAttempt{{Counts: counts}}, now)
	for i := range fields.NumField() {
		if !strings.Contains(shown, fmt.Sprint(7001+i)) {
			t.Errorf("%s are not shown in\n%s", fields.Type().Field(i).Name, shown)
		}
	}
}

func TestAnAgeIsNeverNegative(t *testing.T) {
	for want, at := range map[string]time.Time{
		"-":   {},
		"60m": now.Add(-time.Hour),
		"0s":  now.Add(time.Hour), // written by a clock that is ahead
	} {
		if got := Age(at, now); got != want {
			t.Errorf("the age of %v is %q, want %q", at, got, want)
		}
	}
}
