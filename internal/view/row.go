// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// Row is what the table of jobs says of one, of whatever kind.
type Row struct {
	Kind, Namespace, Name string
	// State is a word for people.
	State string
	// Attempt is the number of the attempt, from 0; -1 for kinds that have none.
	Attempt int32
	// Running, Succeeded and Total count tasks.
	Running, Succeeded, Total int32
	// Waiting says why the job does not run, or what the job waits for. Empty if the job does not wait.
	Waiting string
	// Ended says how a Framework failed, such as worker/0 exited with 1: CUDA out of memory. Empty if the job did not
	// fail.
	Ended string
	// Message is the job's own message about the state. Empty for a Framework.
	Message string
	// Seen reports that a controller has written a status, for a job that is no Framework.
	Seen bool
	// Created is when the object was.
	Created time.Time
	// Code is the completion code of a Framework's last attempt, nil if no attempt has ended.
	Code *frameworkv1.CompletionCode
}

// Why returns what the job waits for, or how it failed; "" if neither applies.
func (r *Row) Why() string {
	if ToneOf(r.State) == ToneBad {
		return cmp.Or(r.Ended, r.Message)
	}
	return r.Waiting
}

// Progress returns how many tasks of a job run or, once it has ended, have succeeded. `what` says which of the two it
// counts.
func (r *Row) Progress() (count int32, what string) {
	if Final(r.State) || JobFinal(r.State) {
		return r.Succeeded, "succeeded"
	}
	return r.Running, "running"
}

// orders are the ways in which rows can be sorted.
var orders = map[string]func(a, b *Row) int{
	"name": func(a, b *Row) int { return 0 },
	"age":  func(a, b *Row) int { return b.Created.Compare(a.Created) },
	"state": func(a, b *Row) int {
		return cmp.Or(cmp.Compare(urgency(a.State), urgency(b.State)), cmp.Compare(a.State, b.State))
	},
	"running": func(a, b *Row) int { return cmp.Compare(b.Running, a.Running) },
	"kind":    func(a, b *Row) int { return cmp.Compare(a.Kind, b.Kind) },
}

// urgency returns the place of a state where rows are sorted by state.
func urgency(state string) int {
	return slices.Index([]Tone{ToneBad, ToneWaits, ToneRuns, ToneQuiet, ToneGood}, ToneOf(state))
}

// Orders returns the names of the ways in which rows can be sorted.
func Orders() []string { return []string{"name", "age", "state", "running", "kind"} }

// Sort sorts rows by one of Orders: by name; newest first; failed and waiting first; most running tasks first; or by
// kind. Rows that are equal in this order are sorted by namespace and name. Sort returns false for an unknown order.
func Sort(rows []Row, by string) bool {
	order, known := orders[cmp.Or(by, "name")]
	if known {
		slices.SortStableFunc(rows, func(a, b Row) int {
			return cmp.Or(order(&a, &b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return known
}

// RowOfFramework returns the row of a Framework.
func RowOfFramework(fw *frameworkv1.Framework, now time.Time) Row {
	row := Row{Kind: "Framework", Namespace: fw.Namespace, Name: fw.Name, State: FrameworkState(fw), Created: fw.CreationTimestamp.Time}
	status := fw.Status
	if status == nil {
		for _, role := range fw.Spec.TaskRoles {
			row.Total += role.TaskNumber
		}
		if row.State == StateCreating {
			row.Waiting = "lockstep-controller"
		}
		return row
	}
	row.Attempt = status.AttemptStatus.ID
	if status.Tasks != nil {
		row.Running, row.Succeeded, row.Total = status.Tasks.Running, status.Tasks.Succeeded, status.Tasks.Total
	}
	if end := status.AttemptStatus.CompletionStatus; end != nil {
		// Not a pointer into the status, which would keep the whole status in memory.
		code := end.Code
		row.Code = &code
		if row.State == StateFailed {
			row.Ended = endOfAttempt(end).Says()
		}
	}
	row.Waiting = waitingFor(status, now)
	return row
}

// waitingFor returns the first of what holds a Framework up.
func waitingFor(status *frameworkv1.FrameworkStatus, now time.Time) string {
	if status.State == frameworkv1.FrameworkCompleted {
		return ""
	}
	is := func(kind string, value metav1.ConditionStatus) *metav1.Condition {
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == kind && c.Status == value {
				return c
			}
		}
		return nil
	}
	if delay := status.RetryPolicyStatus.RetryDelaySec; delay != nil && status.State == frameworkv1.FrameworkAttemptCompleted {
		whole := time.Duration(*delay) * time.Second
		// The controller's clock may be ahead of the reader's.
		left := min(max(0, status.TransitionTime.Add(whole).Sub(now)), whole)
		return fmt.Sprintf("next attempt in %s", left.Round(time.Second))
	}
	if c := is(frameworkv1.ConditionAdmitted, metav1.ConditionFalse); c != nil {
		return "Kueue: " + c.Reason
	}
	if c := is(frameworkv1.ConditionTasksBlocked, metav1.ConditionTrue); c != nil {
		return c.Reason
	}
	if c := is(frameworkv1.ConditionGangScheduled, metav1.ConditionFalse); c != nil {
		return c.Reason
	}
	if len(status.Waiting) > 0 {
		return fmt.Sprintf("%s (%d)", status.Waiting[0].Reason, status.Waiting[0].Tasks)
	}
	return ""
}

// RowOfVolcanoJob returns the row of a Job of Volcano.
func RowOfVolcanoJob(job *batchv1alpha1.Job) Row {
	row := Row{
		Kind: "Job.batch.volcano.sh", Namespace: job.Namespace, Name: job.Name, State: string(job.Status.State.Phase), Attempt: job.Status.RetryCount,
		Running: job.Status.Running, Succeeded: job.Status.Succeeded, Created: job.CreationTimestamp.Time,
	}
	for _, task := range job.Spec.Tasks {
		row.Total += task.Replicas
	}
	row.Message, row.Seen = job.Status.State.Message, row.State != ""
	if row.State == "" {
		row.State = "Pending"
	}
	if row.State == "Pending" || row.State == "Inqueue" {
		row.Waiting = job.Status.State.Reason
	}
	return row
}

// replicated has the fields of a Kubeflow job that its row needs. Each kind of job uses only one of the maps of
// replicas.
type replicated struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any       `json:"spec"`
	Status            kubeflowv1.JobStatus `json:"status"`
}

// RowOfTrainingJob returns the row of a training job of Kubeflow, of any kind. object is the job's JSON.
// RowOfTrainingJob returns an error if that is no training job.
func RowOfTrainingJob(kind string, object map[string]any) (Row, error) {
	var job replicated
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &job); err != nil {
		return Row{}, fmt.Errorf("reading a %s: %w", kind, err)
	}
	row := Row{Kind: kind, Namespace: job.Namespace, Name: job.Name, State: "Pending", Attempt: -1, Created: job.CreationTimestamp.Time, Seen: len(job.Status.Conditions) > 0}
	for _, c := range job.Status.Conditions {
		if c.Status != "True" || c.Type == "Created" {
			continue
		}
		row.State, row.Message, row.Waiting = string(c.Type), c.Message, ""
		if c.Type == "Restarting" || c.Type == "Suspended" {
			row.Waiting = c.Reason
		}
	}
	for _, field := range slices.Sorted(maps.Keys(job.Spec)) {
		replicas, _ := job.Spec[field].(map[string]any)
		if len(field) < len("ReplicaSpecs") || field[len(field)-len("ReplicaSpecs"):] != "ReplicaSpecs" {
			continue
		}
		for _, value := range replicas {
			spec, _ := value.(map[string]any)
			switch n := spec["replicas"].(type) {
			case int64:
				row.Total += int32(min(max(n, 0), 1<<20))
			case nil:
				row.Total++
			}
		}
	}
	for _, counts := range []map[string]kubeflowv1.ReplicaStatus{job.Status.ReplicaStatuses, job.Status.TFReplicaStatuses} {
		for _, count := range counts {
			row.Running += count.Active
			row.Succeeded += count.Succeeded
		}
	}
	return row, nil
}
