// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"fmt"
	"strings"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// maxMissing is how many missing tasks Readiness names.
const maxMissing = 5

// Readiness says how many tasks of a Framework have an address.
type Readiness struct {
	// Ready of Total tasks have one.
	Ready, Total int
	// Missing are the first few that have none, as {role}[{index}].
	Missing []string
}

// Passed says whether all tasks have an address. A Framework without tasks has
// passed.
func (r Readiness) Passed() bool {
	return r.Ready >= r.Total
}

func (r Readiness) String() string {
	text := fmt.Sprintf("%d of %d tasks have an address", r.Ready, r.Total)
	if len(r.Missing) == 0 {
		return text
	}
	text += ", missing " + strings.Join(r.Missing, ", ")
	if more := r.Total - r.Ready - len(r.Missing); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Check counts the tasks of the spec that have an address in the status, which
// is not compressed.
//
// A task that was scaled down and came back has the status of the one before it
// until the controller has replaced it: marked deletionPending, so that it counts
// as missing. An address stays after the task has completed, so a task that is
// done is no reason to wait; the retry of a task starts without one.
func Check(framework *frameworkv1.Framework) Readiness {
	var r Readiness
	for i := range framework.Spec.TaskRoles {
		role := &framework.Spec.TaskRoles[i]
		number := int(max(role.TaskNumber, 0))
		tasks := wanted(taskStatuses(framework, role.Name), number)
		r.Total += number
		for index := range number {
			if index < len(tasks) && hasAddress(tasks[index]) {
				r.Ready++
			} else if len(r.Missing) < maxMissing {
				r.Missing = append(r.Missing, fmt.Sprintf("%s[%d]", role.Name, index))
			}
		}
	}
	return r
}

// taskStatuses are those of a role, none if the status does not have the role.
func taskStatuses(framework *frameworkv1.Framework, role string) []*frameworkv1.TaskStatus {
	if framework.Status == nil {
		return nil
	}
	for _, status := range framework.Status.AttemptStatus.TaskRoleStatuses {
		if status != nil && status.Name == role {
			return status.TaskStatuses
		}
	}
	return nil
}

// wanted are the tasks that the spec asks for: statuses may hold more of them
// while a role is scaled down.
func wanted(tasks []*frameworkv1.TaskStatus, number int) []*frameworkv1.TaskStatus {
	return tasks[:min(len(tasks), number)]
}

func hasAddress(task *frameworkv1.TaskStatus) bool {
	return task != nil && !task.DeletionPending && podIP(task) != ""
}

// podIP is the address of a task's Pod, empty if it has none.
func podIP(task *frameworkv1.TaskStatus) string {
	if task == nil || task.AttemptStatus.PodIP == nil {
		return ""
	}
	return *task.AttemptStatus.PodIP
}
