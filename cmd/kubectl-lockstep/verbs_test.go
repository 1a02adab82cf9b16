// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

func TestLinesOfLogsStayWholeAndAreBounded(t *testing.T) {
	var out bytes.Buffer
	o := &logOptions{session: &session{out: &out}}
	if err := o.copy("[worker/0] ", strings.NewReader("one\n\nthree without an end")); err != nil {
		t.Fatal(err)
	}
	if want := "[worker/0] one\n[worker/0] \n[worker/0] three without an end\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if err := o.copy("", strings.NewReader(strings.Repeat("x", 2*maxLine+1))); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > maxLine+1 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestWhereThereAreNoLogsItSaysWhy(t *testing.T) {
	runs := &frameworkv1.Framework{Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}}
	runs.Name, runs.Status.AttemptStatus.ID = "a", 2
	for want, attempt := range map[string]int32{
		"the Pods are gone":          1,
		"there is no attempt 7 of a": 7,
		"no Pod of task w/3 now":     -1,
	} {
		if got := (&logOptions{attempt: attempt}).noPods(runs, chosen{role: "w", index: 3}).Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestATaskIsChosenByRoleAndIndex(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{frameworkv1.KeyTaskRoleName: "worker", frameworkv1.KeyTaskIndex: "3"}
	for arg, want := range map[string]bool{"worker": true, "worker/3": true, "worker/33": false, "ps": false, "ps/3": false} {
		c, err := parseTask(arg)
		if err != nil || c.has(pod) != want {
			t.Errorf("%s: %v, %v", arg, c.has(pod), err)
		}
	}
	for _, arg := range []string{"worker/", "worker/-1", "/3", "worker/x"} {
		if _, err := parseTask(arg); err == nil {
			t.Errorf("%s is taken", arg)
		}
	}
}

func TestAnAttemptIsEndedOnlyIfAnotherFollows(t *testing.T) {
	for want, policies := range map[bool][]frameworkv1.RetryPolicySpec{
		true:  {{FancyRetryPolicy: true}, {MaxRetryCount: -1}, {MaxRetryCount: -2}, {MaxRetryCount: 2}},
		false: {{}, {MaxRetryCount: 1}},
	} {
		for _, policy := range policies {
			fw := &frameworkv1.Framework{Spec: frameworkv1.FrameworkSpec{RetryPolicy: policy}, Status: &frameworkv1.FrameworkStatus{}}
			fw.Status.RetryPolicyStatus.AccountableRetriedCount = 1
			if got := retriedAfterLoss(fw); got != want {
				t.Errorf("%+v: got %v", policy, got)
			}
		}
	}
}

func TestAFrameworkThatIsMadeAnewIsWhatTheUserWrote(t *testing.T) {
	old := &frameworkv1.Framework{Spec: frameworkv1.FrameworkSpec{ExecutionType: frameworkv1.ExecutionStop, Description: "mine"}, Status: &frameworkv1.FrameworkStatus{}}
	old.Name, old.UID, old.ResourceVersion, old.Labels = "a", "u", "7", map[string]string{"team": "b"}
	anew := renewed(old)
	if anew.UID != "" || anew.ResourceVersion != "" || anew.Status != nil || anew.Name != "a" || anew.Labels["team"] != "b" || anew.Spec.Description != "mine" || anew.Spec.ExecutionType != frameworkv1.ExecutionStart {
		t.Errorf("%+v", anew)
	}
}

func TestScaleChangesTheRolesThatItNamesAndNoOthers(t *testing.T) {
	fw := &frameworkv1.Framework{Spec: frameworkv1.FrameworkSpec{TaskRoles: []frameworkv1.TaskRoleSpec{{Name: "ps"}, {Name: "worker"}}}}
	patch, err := scalePatch(fw, map[string]int32{"worker": 4})
	if err != nil || len(patch) != 3 || patch[1]["path"] != "/spec/taskRoles/1/name" || patch[2]["path"] != "/spec/taskRoles/1/taskNumber" || patch[2]["value"] != int32(4) {
		t.Errorf("%v %v", patch, err)
	}
	for _, wrong := range [][]string{{"worker"}, {"=1"}, {"worker=-1"}, {"worker=10001"}, {"worker=1", "worker=2"}} {
		if _, err := parseScale(wrong); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

func TestStatesAreTakenInAnyCase(t *testing.T) {
	for _, state := range view.States() {
		if got, err := parseState(strings.ToLower(state)); err != nil || got != state {
			t.Errorf("%s: %s %v", state, got, err)
		}
	}
}

func TestTheNameOfTheCompletionIsAnotherNameOfTheProgram(t *testing.T) {
	got := asCompletion([]string{"/bin/kubectl_complete-framework", "get", ""})
	if want := []string{"kubectl-framework", "__complete", "get", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
