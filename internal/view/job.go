// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Job holds what is known of a job or a PodGroup that is no Framework. Every field except Row may be empty.
type Job struct {
	Row  Row
	Pods []corev1.Pod
	// PodGroup is that of the job, or the object itself.
	PodGroup   *schedulingv1alpha1.PodGroup
	Conditions []metav1.Condition
	Events     []corev1.Event
	Unread     []string
}

// OfJob builds the tree of a job that is no Framework. Its roles and tasks are taken from the Pods.
func OfJob(job Job) *Tree {
	tree := &Tree{Row: job.Row, Conditions: job.Conditions, Events: LastEvents(job.Events), Unread: slices.Clone(job.Unread)}
	tree.Attempt = &Attempt{ID: job.Row.Attempt, State: job.Row.State, Started: job.Row.Created, Gang: gang(&frameworkv1.FrameworkAttemptStatus{}, job.PodGroup)}
	byRole := make(map[string][]*corev1.Pod)
	var names []string
	for i := range job.Pods {
		role, _ := TaskOf(&job.Pods[i])
		if byRole[role] == nil {
			names = append(names, role)
		}
		byRole[role] = append(byRole[role], &job.Pods[i])
	}
	slices.Sort(names)
	for _, name := range names {
		tree.Attempt.Roles = append(tree.Attempt.Roles, roleOfPods(name, byRole[name]))
	}
	return tree
}

// roleOfPods returns a role with a task for each Pod.
func roleOfPods(name string, pods []*corev1.Pod) Role {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	role := Role{Name: cmp.Or(name, "Pods"), Total: int32(len(pods))}
	tasks, indexed := make([]task, len(pods)), true
	for i, pod := range pods {
		_, text := TaskOf(pod)
		index, err := strconv.ParseInt(text, 10, 32)
		indexed = indexed && err == nil
		tasks[i] = taskOfPod(pod, int32(index))
		if tasks[i].state == StateRunning {
			role.Running++
		}
	}
	if !indexed {
		for i := range tasks {
			tasks[i].index = int32(i)
		}
	}
	role.Tasks = rows(tasks)
	for i := range role.Tasks {
		if row := &role.Tasks[i]; !indexed && row.PodName != "" {
			row.Indexes = row.PodName
		}
	}
	return role
}

// taskOfPod returns a task of which only the Pod is known.
func taskOfPod(pod *corev1.Pod, index int32) task {
	t := task{index: index, state: StatePreparing, node: pod.Spec.NodeName, pod: pod.Name, since: pod.CreationTimestamp.Time, started: pod.CreationTimestamp.Time}
	if at := pod.Status.StartTime; at != nil {
		t.since = at.Time
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		t.state = StateSucceeded
	case pod.Status.Phase == corev1.PodFailed:
		t.state = StateFailed
	case pod.DeletionTimestamp != nil:
		t.state, t.since = StateEnding, pod.DeletionTimestamp.Time
	case pod.Status.Phase == corev1.PodRunning:
		t.state = StateRunning
	default:
		t.reason, t.message = WaitingOf(pod)
	}
	if t.state != StateFailed && t.state != StateSucceeded {
		return t
	}
	t.reason, t.message = pod.Status.Reason, pod.Status.Message
	for _, container := range pod.Status.ContainerStatuses {
		end := container.State.Terminated
		if end == nil {
			continue
		}
		if t.ended = end.FinishedAt.Time; t.code == nil || *t.code == 0 {
			code := frameworkv1.CompletionCode(end.ExitCode)
			t.code, t.since = &code, end.FinishedAt.Time
			t.reason, t.message = cmp.Or(pod.Status.Reason, end.Reason), cmp.Or(pod.Status.Message, end.Message)
		}
	}
	return t
}

// TaskOf returns the role and the index of a Pod in its job, from the labels and annotations that each kind of job
// uses.
func TaskOf(pod *corev1.Pod) (role, index string) {
	for _, keys := range [][2]string{
		{frameworkv1.KeyTaskRoleName, frameworkv1.KeyTaskIndex},
		{batchv1alpha1.KeyTaskName, batchv1alpha1.KeyTaskIndex},
		{kubeflowv1.KeyReplicaType, kubeflowv1.KeyReplicaIndex},
		{schedulingv1alpha1.LabelRole, ""},
	} {
		if role := cmp.Or(pod.Annotations[keys[0]], pod.Labels[keys[0]]); role != "" {
			return role, cmp.Or(pod.Annotations[keys[1]], pod.Labels[keys[1]])
		}
	}
	return "", ""
}

// TaskOfPod returns the name by which users know a Pod's task: ROLE/INDEX, or the Pod's name if it has no index.
func TaskOfPod(pod *corev1.Pod) string {
	role, index := TaskOf(pod)
	if index == "" {
		return pod.Name
	}
	return role + "/" + index
}

// JobStates returns the states of jobs of all kinds and of PodGroups.
func JobStates() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(States(), "Pending", "Inqueue", "Restarting", "Suspended", "Aborting", "Aborted",
		"Completing", "Completed", "Terminating", "Terminated", "Unknown"))))
}

// JobFinal reports whether a state of a PodGroup, or of a job that is no Framework, is final.
func JobFinal(state string) bool {
	return Final(state) || state == "Completed" || state == "Terminated"
}

// RowOfPodGroup returns the row of a PodGroup: the phase, and how many Pods of the minimum run.
func RowOfPodGroup(group *schedulingv1alpha1.PodGroup) Row {
	row := Row{Kind: "PodGroup", Namespace: group.Namespace, Name: group.Name, State: cmp.Or(string(group.Status.Phase), string(schedulingv1alpha1.PodGroupPending)),
		Attempt: -1, Running: group.Status.Running, Total: group.Spec.MinMember, Created: group.CreationTimestamp.Time, Seen: true}
	row.Waiting = WaitingOfGroup(group)
	return row
}

// WaitingOfGroup returns the reason for which a PodGroup is not placed; empty if so.
func WaitingOfGroup(group *schedulingv1alpha1.PodGroup) string {
	for _, c := range group.Status.Conditions {
		if c.Type == schedulingv1alpha1.ConditionUnschedulable && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
