// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Objects holds what is known of a Framework. Every field except the Framework may be nil.
type Objects struct {
	Framework *frameworkv1.Framework
	PodGroup  *schedulingv1alpha1.PodGroup
	// Pods may include others: only Pods with the Framework's UID count.
	Pods []corev1.Pod
	// Events are those of the Framework and the PodGroup.
	Events []corev1.Event
	// Unread says what could not be read, and why, one sentence each.
	Unread []string
}

// Tree is what users see of a Framework.
type Tree struct {
	// Row is the row in the table of jobs.
	Row
	// Attempt is the current attempt, or the last one if the Framework has ended. Nil until the controller has begun
	// the first.
	Attempt *Attempt
	// History are the attempts that are over, the oldest first.
	History []PastAttempt
	// Policies say in words what the spec asks for.
	Policies []string
	// Conditions are those of the Framework.
	Conditions []metav1.Condition
	// Events are the last MaxEvents, the oldest first.
	Events []Event
	// Unread says what is missing here, because the read failed.
	Unread []string
}

// Attempt is one attempt of a Framework.
type Attempt struct {
	// ID counts from 0.
	ID int32
	// State is a word for people; see FrameworkState.
	State string
	// Since is when the state last changed.
	Since time.Time
	// Started is when the attempt began.
	Started time.Time
	// End describes the end. Nil before the end.
	End *End
	// Gang is nil if the attempt is none.
	Gang *Gang
	// Roles are in the order of the spec. Roles that only the status has come last.
	Roles []Role
}

// Gang is the PodGroup of an attempt.
type Gang struct {
	Name  string
	Phase string
	// Minimum is how many members have to be placed together.
	Minimum int32
	// Placed is how many are on nodes.
	Placed int32
	// Reason and Message say why the gang waits. Empty if the gang does not wait.
	Reason, Message string
	// Since is when the wait began.
	Since time.Time
}

// Role is a kind of task.
type Role struct {
	Name string
	// Running and Total count the tasks; tasks that are scaled down are left out.
	Running, Total int32
	// Tasks are the rows.
	Tasks []Tasks
}

// OfFramework builds the tree of a Framework. Times are as stored; `now` only decides which retries are still to come.
func OfFramework(o Objects, now time.Time) *Tree {
	fw := o.Framework
	tree := &Tree{Row: RowOfFramework(fw, now), Policies: policies(fw), Unread: slices.Clone(o.Unread), Events: LastEvents(o.Events)}
	status := fw.Status
	if status == nil {
		return tree
	}
	tree.History = history(status)
	tree.Conditions = slices.Clone(status.Conditions)
	for i := range tree.Conditions {
		tree.Conditions[i].Message = InWords(tree.Conditions[i].Message)
	}
	attempt := &status.AttemptStatus
	roles, err := roleStatuses(attempt)
	if err != nil {
		tree.Unread = append(tree.Unread, "The tasks can't be shown: the compressed status of the Framework can't be read: "+err.Error())
	}
	tree.Attempt = &Attempt{
		ID: attempt.ID, State: FrameworkState(fw), Since: status.TransitionTime.Time, Started: attempt.StartTime.Time,
		Gang: gang(attempt, o.PodGroup), Roles: rolesOf(fw, roles, podsOf(fw, o.Pods)),
	}
	if end := attempt.CompletionStatus; end != nil {
		tree.Attempt.End = endOfAttempt(end)
	}
	return tree
}

// roleStatuses are those of an attempt, which may be compressed.
func roleStatuses(attempt *frameworkv1.FrameworkAttemptStatus) ([]*frameworkv1.TaskRoleStatus, error) {
	if attempt.TaskRoleStatuses != nil || len(attempt.TaskRoleStatusesCompressed) == 0 {
		return attempt.TaskRoleStatuses, nil
	}
	return statuscodec.DecompressRoles(attempt.TaskRoleStatusesCompressed)
}

func trigger(end *frameworkv1.FrameworkAttemptCompletionStatus) string {
	if end.Trigger == nil || end.Trigger.TaskRoleName == "" {
		return ""
	}
	return TaskName(end.Trigger.TaskRoleName, end.Trigger.TaskIndex)
}

// TaskName returns how people name a task: ROLE/INDEX.
func TaskName(role string, index int32) string {
	return role + "/" + strconv.Itoa(int(index))
}

// gang prefers what the PodGroup itself says: the Framework's copy follows the PodGroup.
func gang(attempt *frameworkv1.FrameworkAttemptStatus, group *schedulingv1alpha1.PodGroup) *Gang {
	kept := attempt.PodGroup
	if kept == nil && group == nil {
		return nil
	}
	var gang Gang
	if kept != nil {
		gang = Gang{Name: kept.Name, Phase: string(kept.Phase), Minimum: kept.MinMember, Placed: kept.Scheduled}
		if u := kept.Unschedulable; u != nil {
			gang.Reason, gang.Message, gang.Since = u.Reason, u.Message, u.Since.Time
		}
	}
	// A PodGroup of the name from an earlier attempt, or another owner, says nothing here.
	if group == nil || kept != nil && kept.UID != group.UID {
		return &gang
	}
	gang = Gang{Name: group.Name, Phase: string(group.Status.Phase), Minimum: group.Spec.MinMember, Placed: group.Status.Scheduled}
	for _, condition := range group.Status.Conditions {
		if condition.Type == schedulingv1alpha1.ConditionUnschedulable && condition.Status == metav1.ConditionTrue {
			gang.Reason, gang.Message, gang.Since = condition.Reason, condition.Message, condition.LastTransitionTime.Time
		}
	}
	return &gang
}

// podsOf returns the Pods of the Framework, by UID.
func podsOf(fw *frameworkv1.Framework, pods []corev1.Pod) map[string]*corev1.Pod {
	own := make(map[string]*corev1.Pod, len(pods))
	for i := range pods {
		if IsPodOf(fw, &pods[i]) {
			own[string(pods[i].UID)] = &pods[i]
		}
	}
	return own
}

// IsPodOf reports whether a Pod belongs to the Framework, and not to an earlier Framework of the same name.
func IsPodOf(fw *frameworkv1.Framework, pod *corev1.Pod) bool {
	return pod.Namespace == fw.Namespace && pod.Annotations[frameworkv1.KeyFrameworkUID] == string(fw.UID)
}

func rolesOf(fw *frameworkv1.Framework, statuses []*frameworkv1.TaskRoleStatus, pods map[string]*corev1.Pod) []Role {
	byName := make(map[string]*frameworkv1.TaskRoleStatus, len(statuses))
	for _, status := range statuses {
		if status != nil {
			byName[status.Name] = status
		}
	}
	var roles []Role
	for _, spec := range fw.Spec.TaskRoles {
		if status := byName[spec.Name]; status != nil {
			roles = append(roles, roleOf(status, pods))
			delete(byName, spec.Name)
		} else {
			roles = append(roles, Role{Name: spec.Name, Total: spec.TaskNumber})
		}
	}
	for _, status := range statuses {
		if status != nil && byName[status.Name] == status {
			roles = append(roles, roleOf(status, pods))
		}
	}
	return roles
}

func roleOf(status *frameworkv1.TaskRoleStatus, pods map[string]*corev1.Pod) Role {
	role := Role{Name: status.Name}
	tasks := make([]task, 0, len(status.TaskStatuses))
	for _, s := range status.TaskStatuses {
		if s == nil {
			continue
		}
		t := taskOf(s, pods)
		if !s.DeletionPending {
			role.Total++
			if t.state == StateRunning {
				role.Running++
			}
		}
		tasks = append(tasks, t)
	}
	role.Tasks = rows(tasks)
	return role
}

// TasksOf returns tasks of a role in the current attempt one by one, in the order of their indexes: at most count, from
// position `from` on. If state is not empty, only tasks in that state count. The second result is how many such tasks
// there are in all. TasksOf returns an error if the status can't be decoded.
func TasksOf(o Objects, role, state string, from, count int) ([]Tasks, int, error) {
	if o.Framework.Status == nil {
		return nil, 0, nil
	}
	statuses, err := roleStatuses(&o.Framework.Status.AttemptStatus)
	if err != nil {
		return nil, 0, err
	}
	pods := podsOf(o.Framework, o.Pods)
	var chosen []task
	for _, status := range statuses {
		if status == nil || status.Name != role {
			continue
		}
		for _, s := range status.TaskStatuses {
			if s == nil {
				continue
			}
			if t := taskOf(s, pods); state == "" || t.state == state {
				chosen = append(chosen, t)
			}
		}
	}
	slices.SortStableFunc(chosen, func(a, b task) int { return cmp.Compare(a.index, b.index) })
	var page []Tasks
	for i := min(max(from, 0), len(chosen)); i < len(chosen) && len(page) < count; i++ {
		page = append(page, row(chosen[i:i+1]))
	}
	return page, len(chosen), nil
}
