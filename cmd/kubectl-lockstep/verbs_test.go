// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

func TestLinesOfLogsStayWholeAndAreBounded(t *testing.T) {
	var out bytes.Buffer
	o := &logOptions{session: &session{out: &out}}
	if err := o.copy("[worker/0] ", strings.NewReader("one\n\nthree without an end"), nil); err != nil {
		t.Fatal(err)
	}
	if want := "[worker/0] one\n[worker/0] \n[worker/0] three without an end\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if err := o.copy("", strings.NewReader(strings.Repeat("x", 2*maxLine+1)), nil); err != nil {
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
	patch, err := scalePatch(fw, rolesOf(target{fw: fw}), map[string]int32{"worker": 4})
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

// TestTheCompletionOfBashAsksTheProgram sources the script, as users do, and has it complete a second name.
func TestTheCompletionOfBashAsksTheProgram(t *testing.T) {
	var script, told bytes.Buffer
	if code := run(t.Context(), []string{"kubectl-lockstep", "completion", "bash"}, nil, &script, &told); code != exitOK {
		t.Fatal(told.String())
	}
	// What bash-completion provides, and the program.
	bash := exec.CommandContext(t.Context(), "bash", "-c", script.String()+`
_init_completion() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
compopt() { :; }
exec 3>&1
kubectl-lockstep() { echo "$*" >&3; printf '%s\n' second :4; }
complete -p kubectl-lockstep
COMP_WORDS=(kubectl-lockstep stop first s) COMP_CWORD=3 COMP_LINE="kubectl-lockstep stop first s" COMP_POINT=29 COMP_TYPE=9
$(complete -p kubectl-lockstep | sed 's/.*-F \([^ ]*\).*/\1/')
echo "completes ${COMPREPLY[*]}"`)
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"__complete stop first s", "completes second"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestVerbsThatTakeManyNamesCompleteThemAll(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list := frameworkv1.FrameworkList{TypeMeta: metav1.TypeMeta{APIVersion: frameworkv1.SchemeGroupVersion.String(), Kind: "FrameworkList"}}
		for _, name := range []string{"first", "second"} {
			list.Items = append(list.Items, frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	for verb, want := range map[string]string{"start": "second", "stop": "second", "retry": "second", "delete": "second", "get": "second", "history": ""} {
		var out, told bytes.Buffer
		run(t.Context(), []string{"kubectl-lockstep", "__completeNoDesc", "--server=" + server.URL, verb, "first", ""}, nil, &out, &told)
		if got, _, _ := strings.Cut(out.String(), ":"); strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q\n%s", verb, got, want, told.String())
		}
	}
}

func TestTopCountsWhatTheSchedulerCounts(t *testing.T) {
	cpu := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := corev1.Pod{}
	pod.Annotations = map[string]string{frameworkv1.KeyTaskRoleName: "worker"}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: cpu("1")}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always, Resources: cpu("2")}}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	rows := topRows([]corev1.Pod{pod}, nil)
	if got := rows[1][3].Text; len(rows) != 2 || got != "3500m" {
		t.Errorf("it requests %s", got)
	}
}
