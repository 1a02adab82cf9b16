// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// makeFramework makes a Framework of workers in the queue "queue", in a state.
func makeFramework(state frameworkv1.FrameworkState, workers int32, annotated bool) *frameworkv1.Framework {
	f := &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fw", UID: "u", Labels: map[string]string{frameworkv1.LabelQueue: "queue"}},
		Spec: frameworkv1.FrameworkSpec{ExecutionType: frameworkv1.ExecutionStart, TaskRoles: []frameworkv1.TaskRoleSpec{
			{Name: "worker", TaskNumber: workers, Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(`{"spec": {"containers": [{"name": "{{FC_TASKROLE_NAME}}"}]}}`)}}},
			{Name: "none", Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(`{}`)}}},
		}},
		Status: &frameworkv1.FrameworkStatus{State: state},
	}
	if annotated {
		f.Annotations = map[string]string{frameworkv1.AnnotationAdmission: `{"framework": "u", "workload": "w"}`}
	}
	return f
}

// asking is an admitted Framework of two workers whose container was changed.
func asking(state frameworkv1.FrameworkState, container string) *frameworkv1.Framework {
	f := makeFramework(state, 2, true)
	f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(`{"spec": {"containers": [` + container + `]}}`)
	return f
}

// makeWorkload makes the Workload of a Framework of two workers, with conditions that are True.
func makeWorkload(t *testing.T, conditions ...string) *workload {
	t.Helper()
	w, err := newWorkload(makeFramework("", 2, false))
	if err != nil {
		t.Fatal(err)
	}
	w.UID, w.Generation = "w", 3
	for _, kind := range conditions {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Preempted",
			Message: "for another", LastTransitionTime: metav1.NewTime(now.Add(-24 * time.Hour))})
	}
	w.Status.Admission = &assignments{}
	return w
}

func TestWhatIsDoneForAFrameworkInAQueue(t *testing.T) {
	const (
		waiting = frameworkv1.FrameworkAttemptCreationPending
		running = frameworkv1.FrameworkAttemptRunning
		over    = frameworkv1.FrameworkCompleted
	)
	with := func(conditions ...string) *workload { return makeWorkload(t, conditions...) }
	tests := map[string]struct {
		framework *frameworkv1.Framework
		workload  *workload
		held      time.Duration
		want      string
	}{
		"it is new":                                        {makeFramework("", 2, false), nil, 0, "create"},
		"it waits":                                         {makeFramework(waiting, 2, false), with(), 0, ""},
		"it waits for checks, and has quota":               {makeFramework(waiting, 2, false), with(conditionQuotaReserved), 0, ""},
		"it is admitted":                                   {makeFramework(waiting, 2, false), with(conditionQuotaReserved, conditionAdmitted), 0, "admit"},
		"it runs, as it is admitted":                       {makeFramework(running, 2, true), with(conditionQuotaReserved, conditionAdmitted), 0, "admit"},
		"it is evicted":                                    {makeFramework(running, 2, true), with(conditionQuotaReserved, conditionAdmitted, conditionEvicted), 0, "hold"},
		"it gives way":                                     {makeFramework(frameworkv1.FrameworkAttemptDeleting, 2, false), with(conditionQuotaReserved, conditionAdmitted, conditionEvicted), time.Hour, ""},
		"it has just given way":                            {makeFramework(waiting, 2, false), with(conditionQuotaReserved, conditionAdmitted, conditionEvicted), time.Second, "again"},
		"it has given way":                                 {makeFramework(waiting, 2, false), with(conditionQuotaReserved, conditionAdmitted, conditionEvicted), 3 * time.Second, "status"},
		"it has given its quota back":                      {makeFramework(waiting, 2, false), with(conditionEvicted), time.Hour, ""},
		"its Workload is gone":                             {makeFramework(running, 2, true), nil, 0, "hold"},
		"its Workload has lost the admission":              {makeFramework(running, 2, true), with(), 0, "hold"},
		"it was scaled":                                    {makeFramework(running, 3, true), with(conditionQuotaReserved, conditionAdmitted), 0, "hold"},
		"it was scaled, and gives way":                     {makeFramework(frameworkv1.FrameworkAttemptDeleting, 3, false), with(conditionQuotaReserved, conditionAdmitted), time.Hour, ""},
		"it was scaled, and has just given way":            {makeFramework(waiting, 3, false), with(conditionQuotaReserved, conditionAdmitted), time.Second, "again"},
		"it was scaled, and has given way":                 {makeFramework(waiting, 3, false), with(conditionQuotaReserved, conditionAdmitted), 3 * time.Second, "remove"},
		"it was scaled while it waited":                    {makeFramework(waiting, 3, false), with(), 0, "remove"},
		"it asks for more than it was admitted with":       {asking(running, `{"resources": {"limits": {"example.com/gpu": 8}}}`), with(conditionQuotaReserved, conditionAdmitted), 0, "hold"},
		"it asks for another image":                        {asking(running, `{"image": "new"}`), with(conditionQuotaReserved, conditionAdmitted), 0, "admit"},
		"what it asks for can't be told any more":          {asking(running, `{"resources": {"limits": {"example.com/{{FC_TASK_INDEX}}": 8}}}`), with(conditionQuotaReserved, conditionAdmitted), 0, "hold"},
		"it is Completed":                                  {makeFramework(over, 2, true), with(conditionQuotaReserved, conditionAdmitted), 0, "status"},
		"it is Completed, and that is known":               {makeFramework(over, 2, true), with(conditionFinished), 0, ""},
		"it was Completed before it was ever in the queue": {makeFramework(over, 2, false), nil, 0, ""},
		"it has no tasks":                                  {makeFramework("", 0, false), nil, 0, "refusal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			next := decide(situation{framework: tc.framework, workload: tc.workload, heldSince: now.Add(-tc.held), now: now})
			got := ""
			for what, is := range map[string]bool{"create": next.create != nil, "remove": next.remove, "admit": next.admit, "hold": next.hold,
				"status": next.status != nil && !next.admit, "again": next.again > 0, "refusal": next.refusal != ""} {
				if is {
					got += what
				}
			}
			if got != tc.want {
				t.Errorf("the next step is %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("it is not to begin yet", func(t *testing.T) {
		f := makeFramework("", 2, false)
		f.Spec.ExecutionType = frameworkv1.ExecutionCreate
		if next := decide(situation{framework: f, now: now}); next.create != nil {
			t.Error("it has a Workload")
		}
	})
	t.Run("the Workload is that of a Framework of its name that was deleted", func(t *testing.T) {
		w := with(conditionQuotaReserved, conditionAdmitted)
		w.OwnerReferences[0].UID = "earlier"
		next := decide(situation{framework: makeFramework(waiting, 2, false), workload: w, now: now})
		if next.admit || next.remove || next.refusal != "" {
			t.Errorf("the next step is %+v", next)
		}
	})
	t.Run("the Workload is somebody else's", func(t *testing.T) {
		w := with(conditionQuotaReserved, conditionAdmitted)
		w.OwnerReferences = nil
		if next := decide(situation{framework: makeFramework(waiting, 2, false), workload: w, now: now}); next.admit || next.refusal == "" {
			t.Errorf("the next step is %+v", next)
		}
	})
}

func TestWhatAWorkloadAsksFor(t *testing.T) {
	w := makeWorkload(t)
	got, err := json.Marshal(w.Spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"queueName":"queue","podSets":[{"name":"worker","count":2,"template":{"spec":{"containers":[{"name":"worker","resources":{}}]}}}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" || w.Name != "framework-fw" || !metav1.IsControlledBy(w, makeFramework("", 2, false)) {
		t.Errorf("the Workload is %v\n%s", w, diff)
	}
	f := makeFramework("", 2, false)
	for range maxPodSets {
		f.Spec.TaskRoles = append(f.Spec.TaskRoles, f.Spec.TaskRoles[0])
	}
	if _, err := newWorkload(f); err == nil || !strings.Contains(err.Error(), "at most 18 roles") {
		t.Errorf("a Framework of too many roles: %v", err)
	}
}

// TestAWorkloadAsksForWhatThePodsWillAskFor, whatever placeholders say it.
func TestAWorkloadAsksForWhatThePodsWillAskFor(t *testing.T) {
	tests := map[string]struct{ role, template, want string }{
		"a role is a resource":          {"gpu", `{"spec":{"containers":[{"resources":{"limits":{"example.com/{{FC_TASKROLE_NAME}}":8}}}]}}`, `"limits":{"example.com/gpu":"8"}`},
		"a role is a field":             {"resources", `{"spec":{"containers":[{"{{FC_TASKROLE_NAME}}":{"limits":{"cpu":8}}}]}}`, `"limits":{"cpu":"8"}`},
		"a role is the spec":            {"spec", `{"{{FC_TASKROLE_NAME}}":{"containers":[{"resources":{"limits":{"cpu":8}}}]}}`, `"limits":{"cpu":"8"}`},
		"each task has its resource":    {"w", `{"spec":{"containers":[{"resources":{"limits":{"example.com/{{FC_TASK_INDEX}}":8}}}]}}`, "refused: spec.taskRoles[w].task.pod: the name of a field"},
		"each task has its amount":      {"w", `{"spec":{"containers":[{"resources":{"limits":{"cpu":"{{FC_TASK_INDEX}}"}}}]}}`, "refused: spec.taskRoles[w].task.pod is no Pod template"},
		"an amount is read for ever":    {"w", `{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e20000"}}}]}}`, "refused: spec.taskRoles[w].task.pod.spec"},
		"each task has its environment": {"w", `{"spec":{"containers":[{"args":["{{FC_TASK_INDEX}}"]}]}}`, `"args":["{{FC_TASK_INDEX}}"]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := makeFramework("", 2, false)
			f.Spec.TaskRoles[0].Name, f.Spec.TaskRoles[0].Task.Pod.Raw = tc.role, []byte(tc.template)
			said := ""
			if w, err := newWorkload(f); err != nil {
				said = "refused: " + err.Error()
			} else if text, err := json.Marshal(w.Spec); err == nil {
				said = string(text)
			}
			if !strings.Contains(said, tc.want) {
				t.Errorf("the Workload is %s, want %s", said, tc.want)
			}
		})
	}
}

// TestATemplateBeyondItsBoundsIsNotRead: what is read takes many times the memory of its text. All roles of a Framework are
// read at once.
func TestATemplateBeyondItsBoundsIsNotRead(t *testing.T) {
	const pod = `{"spec":{"containers":[%s]}}`
	nested := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	tests := map[string]struct {
		roles          int
		template, want string
	}{
		"lists in lists":            {1, fmt.Sprintf(pod, `{"x":[`+nested+","+nested+","+nested+`]}`), "must have at most 20000 JSON values, has 27"},
		"many values":               {1, fmt.Sprintf(pod, `{"x":[0`+strings.Repeat(",0", 20_000)+`]}`), "must have at most 20000 JSON values"},
		"many placeholders":         {1, fmt.Sprintf(pod, `{"args":["`+strings.Repeat("{{FC_FRAMEWORK_NAME}}", 30_000)+`"]}`), "must have at most 1048576 bytes, has 1"},
		"many containers":           {1, fmt.Sprintf(pod, `{}`+strings.Repeat(",{}", 1000)), "must have at most 1000 containers"},
		"many values in many roles": {18, fmt.Sprintf(pod, `{"args":["0"`+strings.Repeat(`,"0"`, 5000)+`]}`), "at most 2097152 bytes and 50000 JSON values together"},
		"many bytes in many roles":  {18, fmt.Sprintf(pod, `{"args":["`+strings.Repeat("{{FC_FRAMEWORK_NAME}}", 5000)+`"]}`), "at most 2097152 bytes and 50000 JSON values together"},
		"few of either":             {18, fmt.Sprintf(pod, `{"args":["0"`+strings.Repeat(`,"0"`, 500)+`]}`), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := makeFramework("", 2, false)
			f.Name = strings.Repeat("n", 63)
			f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(tc.template)
			for len(f.Spec.TaskRoles) < tc.roles {
				f.Spec.TaskRoles = append(f.Spec.TaskRoles, f.Spec.TaskRoles[0])
			}
			said := ""
			if _, err := newWorkload(f); err != nil {
				said = err.Error()
			}
			if tc.want == "" && said != "" || !strings.Contains(said, tc.want) {
				t.Errorf("it is said %.300q, want %q", said, tc.want)
			}
		})
	}
}

// TestAWorkloadOfAnEarlierVersionIsLeftAsItIs: what runs is not queued anew by an upgrade.
func TestAWorkloadOfAnEarlierVersionIsLeftAsItIs(t *testing.T) {
	w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted)
	w.Annotations = nil
	if next := decide(situation{framework: asking(frameworkv1.FrameworkAttemptRunning, `{}`), workload: w, now: now}); !next.admit {
		t.Errorf("the next step is %+v", next)
	}
}

// TestQuotaIsGivenBackAsKueueDoes: what was preempted is in the queue again at once.
func TestQuotaIsGivenBackAsKueueDoes(t *testing.T) {
	w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted, conditionEvicted)
	status := released(situation{framework: makeFramework("", 2, false), workload: w, now: now})
	got := map[string]string{}
	for _, c := range status.Conditions {
		got[c.Type] = fmt.Sprint(c.Status, " ", c.Reason, " ", c.LastTransitionTime.UTC().Format(time.RFC3339))
	}
	want := map[string]string{
		conditionQuotaReserved: "False Pending 2026-01-01T00:00:00Z",
		conditionAdmitted:      "False NoReservation 2026-01-01T00:00:00Z",
		conditionEvicted:       "True Preempted 2025-12-31T00:00:00Z",
		conditionRequeued:      "True Preempted 2026-01-01T00:00:00Z",
		conditionPodsReady:     "False WaitForStart 2026-01-01T00:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" || string(status.Admission) != "null" {
		t.Errorf("-want, +got:\n%s\nthe admission is %v", diff, status.Admission)
	}
	if !w.is(conditionAdmitted) {
		t.Error("the Workload in the cache was changed")
	}
}

func TestWhereTheQuotaIs(t *testing.T) {
	w := makeWorkload(t)
	w.Status.Admission = &assignments{[]assignment{{Name: "worker", Flavors: map[string]string{"cpu": "spot", "memory": "spot", "example.com/gpu": "gpus"}}}}
	s := situation{framework: makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false), workload: w}
	got, err := admissionOf(s, func(name string) (flavor, error) {
		return flavor{NodeLabels: map[string]string{"of": name, name: "yes"}, Tolerations: []corev1.Toleration{{Key: name}}}, nil
	})
	want := frameworkv1.Admission{Framework: "u", Workload: "w", Roles: map[string]frameworkv1.RoleAdmission{"worker": {
		NodeSelector: map[string]string{"of": "spot", "spot": "yes", "gpus": "yes"}, Tolerations: []corev1.Toleration{{Key: "gpus"}, {Key: "spot"}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("-want, +got:\n%s\n%v", diff, err)
	}
}

// TestKueueLearnsWhetherTheTasksRun: it evicts a Framework that is admitted and does not say so in time.
func TestKueueLearnsWhetherTheTasksRun(t *testing.T) {
	gang := func(phase schedulingv1alpha1.PodGroupPhase) *frameworkv1.Framework {
		f := makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true)
		f.Status.AttemptStatus.Gang = &frameworkv1.AttemptGangStatus{Enabled: true}
		f.Status.AttemptStatus.PodGroup = &frameworkv1.AttemptPodGroupStatus{Phase: phase}
		f.Status.Tasks = &frameworkv1.TaskCounts{Total: 2, Pending: 1, Running: 1}
		return f
	}
	tasks := func(counts frameworkv1.TaskCounts) *frameworkv1.Framework {
		f := makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true)
		f.Status.Tasks = &counts
		return f
	}
	preparing := makeFramework(frameworkv1.FrameworkAttemptPreparing, 2, true)
	preparing.Status.AttemptStatus = gang(schedulingv1alpha1.PodGroupRunning).Status.AttemptStatus
	tests := map[string]struct {
		framework    *frameworkv1.Framework
		before, want string
	}{
		"nothing has started":                          {preparing, "", "False WaitForStart"},
		"nothing has started, and that is known":       {preparing, "False WaitForStart", ""},
		"the minimum of the gang runs":                 {gang(schedulingv1alpha1.PodGroupRunning), "False WaitForStart", "True Started"},
		"the gang runs on":                             {gang(schedulingv1alpha1.PodGroupRunning), "True Started", ""},
		"a part of the gang runs":                      {gang(schedulingv1alpha1.PodGroupPending), "False WaitForStart", ""},
		"the gang has lost members":                    {gang(schedulingv1alpha1.PodGroupUnknown), "True Started", "False WaitForRecovery"},
		"the gang waits for members":                   {gang(schedulingv1alpha1.PodGroupUnknown), "False WaitForRecovery", ""},
		"the gang has them back":                       {gang(schedulingv1alpha1.PodGroupRunning), "False WaitForRecovery", "True Recovered"},
		"the gang has lost them again":                 {gang(schedulingv1alpha1.PodGroupUnknown), "True Recovered", "False WaitForRecovery"},
		"another attempt begins":                       {preparing, "True Started", "False WaitForRecovery"},
		"the members of the gang end":                  {gang(schedulingv1alpha1.PodGroupCompleted), "True Started", ""},
		"all tasks run or have ended, and are no gang": {tasks(frameworkv1.TaskCounts{Total: 3, Running: 1, Succeeded: 1, Failed: 1}), "False WaitForStart", "True Started"},
		"one of the tasks does not, and are no gang":   {tasks(frameworkv1.TaskCounts{Total: 3, Running: 2, Pending: 1}), "False WaitForStart", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted)
			if status, reason, known := strings.Cut(tc.before, " "); known {
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: conditionPodsReady, Status: metav1.ConditionStatus(status), Reason: reason})
			}
			next := decide(situation{framework: tc.framework, workload: w, now: now})
			got := ""
			if next.status != nil {
				is := meta.FindStatusCondition(next.status.Conditions, conditionPodsReady)
				got = fmt.Sprint(is.Status, " ", is.Reason)
			}
			if got != tc.want || !next.admit {
				t.Errorf("PodsReady becomes %q, want %q; it is admitted: %v", got, tc.want, next.admit)
			}
		})
	}
	w := makeWorkload(t, conditionPodsReady)
	next := decide(situation{framework: makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false), workload: w, now: now})
	if next.status == nil || meta.IsStatusConditionTrue(next.status.Conditions, conditionPodsReady) {
		t.Errorf("an admission is lost, and the next step is %+v", next)
	}
}

// TestAFrameworkThatAnotherGangPreemptsGivesItsQuotaBack, and is in the queue again at once.
func TestAFrameworkThatAnotherGangPreemptsGivesItsQuotaBack(t *testing.T) {
	ended := func(state frameworkv1.FrameworkState, id int32, why frameworkv1.Disruption) *frameworkv1.Framework {
		f := makeFramework(state, 2, true)
		f.Annotations[frameworkv1.AnnotationAdmission] = `{"framework": "u", "workload": "w", "attempt": 3}`
		f.Status.AttemptStatus.ID = id
		f.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{Disruption: why}}
		return f
	}
	waits := func(scheduled, running int32) *frameworkv1.Framework {
		f := makeFramework(frameworkv1.FrameworkAttemptRunning, 2, true)
		f.Status.Tasks = &frameworkv1.TaskCounts{Total: 2, Pending: 2 - running, Running: running}
		f.Status.AttemptStatus.TaskAttempts.Preemptions = 2
		f.Status.AttemptStatus.PodGroup = &frameworkv1.AttemptPodGroupStatus{EverScheduled: true, Scheduled: scheduled, Unschedulable: &frameworkv1.AttemptUnschedulable{}}
		return f
	}
	for name, tc := range map[string]struct {
		framework *frameworkv1.Framework
		want      bool
	}{
		"its attempt was preempted":                    {ended(frameworkv1.FrameworkAttemptCompleted, 3, frameworkv1.DisruptionPreempted), true},
		"its attempt has lost a node":                  {ended(frameworkv1.FrameworkAttemptCompleted, 3, frameworkv1.DisruptionNodeLost), false},
		"it was admitted after that":                   {ended(frameworkv1.FrameworkAttemptCompleted, 2, frameworkv1.DisruptionPreempted), false},
		"its Pods are still there":                     {ended(frameworkv1.FrameworkAttemptDeleting, 3, frameworkv1.DisruptionPreempted), false},
		"its tasks are retried, and wait for a place":  {waits(0, 0), true},
		"some of its tasks are retried, others run on": {waits(1, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted)
			w.Status.AdmissionChecks = []checkState{{Name: "check", State: "Ready"}}
			next := decide(situation{framework: tc.framework, workload: w, now: now})
			if got := next.status != nil && meta.IsStatusConditionTrue(next.status.Conditions, conditionEvicted); got != tc.want {
				t.Fatalf("it is evicted: %v, want %v", got, tc.want)
			}
			if tc.want && (len(next.status.AdmissionChecks) != 1 || next.status.AdmissionChecks[0].State != "Pending") {
				t.Errorf("its admission checks are %+v", next.status.AdmissionChecks)
			}
		})
	}
}

// TestWhatIsInTheQueueAgainAtOnce: what has lost its place without its fault. All else waits until Kueue says so.
func TestWhatIsInTheQueueAgainAtOnce(t *testing.T) {
	for reason, want := range map[string]bool{"Preempted": true, "NodeFailures": true, "PodsReadyTimeout": false, "Deactivated": false, "AdmissionCheck": false} {
		w := makeWorkload(t, conditionQuotaReserved, conditionAdmitted, conditionEvicted)
		w.Status.Conditions[2].Reason = reason
		status := released(situation{framework: makeFramework("", 2, false), workload: w, now: now})
		if got := meta.IsStatusConditionTrue(status.Conditions, conditionRequeued); got != want {
			t.Errorf("evicted by %s it is in the queue again: %v, want %v", reason, got, want)
		}
	}
}
