// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// A rescale goes through the status in two steps, each of which is persisted before anything depends on it. rescale
// adds tasks that the spec has gained and marks tasks that it has lost; a mark is never taken back. Marked tasks then
// end like others. Once that is persisted, compactTasks removes marked tasks from the tail of the role, or replaces
// them by new tasks where the spec wants more again. A user who has seen a mark or a new task can rely on that.
//
// In an attempt that waits to be created nothing has to end, so tasks that the spec has lost leave in one step:
// otherwise each edit of the spec would make the status longer.

// rescalable reports whether the attempt still follows the spec's task numbers.
func (d *decision) rescalable() bool {
	return !d.completing() && d.next.State != frameworkv1.FrameworkAttemptCompleted
}

// scalePersisted reports whether the written status agrees with the next one about three things: the roles and tasks of
// this attempt, the tasks that are marked for deletion, and the deletion timeouts. Until it agrees, nothing that
// depends on the tasks is decided, not even by the completion policy.
func (d *decision) scalePersisted() bool {
	if d.Persisted == nil || d.Persisted.AttemptStatus.ID != d.next.AttemptStatus.ID {
		return false
	}
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		persisted := d.persistedRoles[role.Name]
		if persisted == nil || len(persisted.TaskStatuses) < len(role.TaskStatuses) ||
			!ptr.Equal(persisted.PodGracefulDeletionTimeoutSec, role.PodGracefulDeletionTimeoutSec) {
			return false
		}
		for i, task := range role.TaskStatuses {
			written := persisted.TaskStatuses[i]
			if written.InstanceUID != task.InstanceUID || written.DeletionPending != task.DeletionPending {
				return false
			}
		}
	}
	return true
}

// rescale adapts the tasks to the numbers in the spec. It ends the round until the written status has these tasks, and
// shows whether the attempt is a gang.
func (d *decision) rescale() (goOn bool) {
	if d.rescalable() {
		d.addAndMark()
	}
	d.backUpDeletionTimeouts()
	if !d.scalePersisted() || !d.gangPersisted() {
		return d.pauseUntilWritten()
	}
	return true
}

// addAndMark adds the tasks that are new in the spec. Tasks that are no longer in the spec are marked for deletion, or
// dropped.
func (d *decision) addAndMark() {
	added, marked := 0, d.dropUnbegun()
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		want := int32(0)
		if spec := d.specRoles[role.Name]; spec != nil {
			want = spec.TaskNumber
		}
		marked += d.markTail(role, want)
	}
	byName := rolesByName(d.next.AttemptStatus.TaskRoleStatuses)
	for i := range d.Framework.Spec.TaskRoles {
		spec := &d.Framework.Spec.TaskRoles[i]
		role := byName[spec.Name]
		if role == nil {
			d.next.AttemptStatus.TaskRoleStatuses = append(d.next.AttemptStatus.TaskRoleStatuses, d.newTaskRole(spec))
			added += max(1, int(spec.TaskNumber))
			continue
		}
		for index := int32(len(role.TaskStatuses)); index < spec.TaskNumber; index++ {
			role.TaskStatuses = append(role.TaskStatuses, d.newTask(spec.Name, index))
			added++
		}
	}
	if added+marked > 0 {
		d.Tell(false, ReasonRescaled, "Rescaled attempt %d: %d tasks added, %d tasks to be deleted", d.next.AttemptStatus.ID, added, marked)
	}
}

// hasBegun reports whether anything of the attempt may exist.
func (d *decision) hasBegun() bool {
	return d.next.State != frameworkv1.FrameworkAttemptCreationPending || d.ConfigMap != nil || len(d.Pods) > 0
}

// dropUnbegun removes, before the attempt has any object, the tasks that the spec no longer has, and the tasks that
// were marked for deletion earlier. dropUnbegun returns how many tasks it removed. A task that the spec wants again is
// a new task.
func (d *decision) dropUnbegun() int {
	if d.hasBegun() {
		return 0
	}
	dropped := 0
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		keep := 0
		if spec := d.specRoles[role.Name]; spec != nil {
			keep = min(len(role.TaskStatuses), int(spec.TaskNumber))
		}
		if marked := slices.IndexFunc(role.TaskStatuses, isMarked); marked >= 0 {
			keep = min(keep, marked)
		}
		dropped += len(role.TaskStatuses) - keep
		role.TaskStatuses = role.TaskStatuses[:keep]
	}
	d.next.AttemptStatus.TaskRoleStatuses = slices.DeleteFunc(d.next.AttemptStatus.TaskRoleStatuses,
		func(role *frameworkv1.TaskRoleStatus) bool { return d.specRoles[role.Name] == nil })
	return dropped
}

func isMarked(task *frameworkv1.TaskStatus) bool { return task.DeletionPending }

// markTail marks the tasks of a role from index `want` on for deletion, the last one first.
func (d *decision) markTail(role *frameworkv1.TaskRoleStatus, want int32) int {
	marked := 0
	for index := len(role.TaskStatuses) - 1; index >= int(want); index-- {
		if role.TaskStatuses[index].DeletionPending {
			continue
		}
		task := cursor{d: d, role: role, index: index}.edit()
		task.DeletionPending = true
		if task.AttemptStatus.CompletionStatus == nil {
			task.AttemptStatus.CompletionStatus = deleteTaskRequested()
		}
		marked++
	}
	return marked
}

// compactTasks removes tasks that are marked for deletion and have completed. If such a task is in the spec again, a
// new task replaces it, which ends the round.
func (d *decision) compactTasks() (goOn bool) {
	if !d.rescalable() {
		return true
	}
	roles := d.next.AttemptStatus.TaskRoleStatuses
	for i := len(roles) - 1; i >= 0; i-- {
		role := roles[i]
		d.stripTail(role)
		if len(role.TaskStatuses) == 0 && d.specRoles[role.Name] == nil {
			roles[i] = roles[len(roles)-1]
			roles = roles[:len(roles)-1]
		}
	}
	d.next.AttemptStatus.TaskRoleStatuses = roles

	replaced := false
	for _, role := range roles {
		spec := d.specRoles[role.Name]
		if spec == nil {
			continue
		}
		for index := range min(len(role.TaskStatuses), int(spec.TaskNumber)) {
			t := cursor{d: d, role: role, spec: spec, index: index}
			deleted, unwritten := t.deleted()
			if unwritten {
				d.Persist(plan.PersistSoon)
			}
			if deleted {
				t.recordDeletion()
				role.TaskStatuses[index] = d.newTask(role.Name, int32(index))
				replaced = true
			}
		}
	}
	if replaced {
		return d.pauseUntilWritten()
	}
	return true
}

// stripTail removes deleted tasks from the end of a role until it has as many tasks as the spec, or its last task is
// not deleted yet.
func (d *decision) stripTail(role *frameworkv1.TaskRoleStatus) {
	want := 0
	spec := d.specRoles[role.Name]
	if spec != nil {
		want = int(spec.TaskNumber)
	}
	for last := len(role.TaskStatuses) - 1; last >= want; last-- {
		t := cursor{d: d, role: role, spec: spec, index: last}
		deleted, unwritten := t.deleted()
		if unwritten {
			d.Persist(plan.PersistSoon)
		}
		if !deleted {
			return
		}
		t.recordDeletion()
		role.TaskStatuses = role.TaskStatuses[:last]
	}
}

// deleted reports whether the task is marked for deletion and the written status says that it has completed. unwritten
// reports that it has completed, but the written status does not say so yet.
func (t cursor) deleted() (deleted, unwritten bool) {
	task := t.status()
	if !task.DeletionPending || task.State != frameworkv1.TaskCompleted {
		return false, false
	}
	persisted := t.persisted()
	if persisted == nil || persisted.State != frameworkv1.TaskCompleted {
		return false, true
	}
	return true, false
}

func (t cursor) recordDeletion() {
	t.d.history = append(t.d.history, History{
		Trigger: OnTaskDeletion, Framework: t.d.withPersistedStatus(), TaskRole: t.role, Task: t.status(),
	})
}
