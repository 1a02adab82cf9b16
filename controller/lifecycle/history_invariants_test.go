// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// taskAttempt names an attempt of a task.
type taskAttempt struct {
	task types.UID
	id   int32
}

// chronicle is what was written of attempts, kept by the test itself.
type chronicle struct {
	// seen are the attempts of tasks of the present attempt of the Framework; one that
	// has ended has its end.
	seen map[taskAttempt]*frameworkv1.CompletionStatus
	// ends are the codes with which attempts of the Framework ended.
	ends map[int32]frameworkv1.CompletionCode
	// of is the attempt of seen.
	of int32
}

// note keeps what a status shows.
func (c *chronicle) note(status *frameworkv1.FrameworkStatus) {
	if c.seen == nil || c.of != status.AttemptStatus.ID {
		c.seen, c.of = map[taskAttempt]*frameworkv1.CompletionStatus{}, status.AttemptStatus.ID
	}
	for uid, task := range tasksByUID(status) {
		key := taskAttempt{uid, task.AttemptStatus.ID}
		c.seen[key] = nil
		if end := task.AttemptStatus.CompletionStatus; end != nil {
			c.seen[key] = &end.CompletionStatus
		}
	}
	if end := status.AttemptStatus.CompletionStatus; end != nil {
		if c.ends == nil {
			c.ends = map[int32]frameworkv1.CompletionCode{}
		}
		c.ends[status.AttemptStatus.ID] = end.Code
	}
}

// counts counts anew what TaskAttemptCounts has to say.
func (c *chronicle) counts() frameworkv1.TaskAttemptCounts {
	var counts frameworkv1.TaskAttemptCounts
	for attempt, end := range c.seen {
		if attempt.id > 0 {
			counts.Retries++
		}
		if end == nil {
			continue
		}
		switch {
		case end.Code == 0 || end.Code == -220 || end.Code == -230:
		case end.Disruption == "Preempted":
			counts.Preemptions++
		case end.Disruption == "NodeLost":
			counts.NodeLosses++
		case end.Disruption == "Evicted":
			counts.Evictions++
		case end.Code == -101 && end.Disruption == "":
			counts.Deletions++
		default:
			counts.Failures++
		}
	}
	return counts
}

// checkHistory holds that the history has each attempt that is over, once, in order, as it
// ended, as many as there may be, and that a record never changes but for its retry.
func (l *life) checkHistory(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	l.chronicle.note(after)
	fail := func(what string, more any) {
		l.t.Helper()
		l.t.Errorf("%s: %v\nhistory %+v\nof %s", what, more, after.History, transcript(after))
	}
	attempt := &after.AttemptStatus
	if diff := cmp.Diff(l.chronicle.counts(), attempt.TaskAttempts); diff != "" {
		fail("the attempts of tasks are counted wrongly (-want +got)", diff)
	}
	isOver := frameworkRank(after.State) >= frameworkRank(frameworkv1.FrameworkAttemptCompleted)
	over := attempt.ID
	if isOver {
		over++
	}
	first := max(0, over-int32(l.options.HistoryLimit))
	if int32(len(after.History)) != over-first {
		fail("the history has a wrong length", len(after.History))
		return
	}
	for i, record := range after.History {
		if record.ID != first+int32(i) || record.CompletionStatus.Code != l.chronicle.ends[record.ID] {
			fail("the history has a wrong record", record)
		}
		if (record.Retry != nil) != (record.ID < attempt.ID) {
			fail("a record has a wrong retry", record.Retry)
		}
		if record.CompletionTime.Before(&record.StartTime) {
			fail("an attempt ends before it begins", record)
		}
	}
	if isOver && l.options.HistoryLimit > 0 {
		last := after.History[len(after.History)-1]
		if last.TaskAttempts != attempt.TaskAttempts || !last.CompletionTime.Equal(attempt.CompletionTime) || last.Tasks != *after.Tasks {
			fail("the last record is not that of the attempt", last)
		}
	}
	if before == nil {
		return
	}
	for _, old := range before.History {
		for _, now := range after.History {
			if now.ID != old.ID {
				continue
			}
			if old.Retry == nil {
				now.Retry = nil
			}
			if diff := cmp.Diff(old, now); diff != "" {
				fail("a record changes", diff)
			}
		}
	}
}

// checkWaiting holds that only tasks wait that prepare, that a reason stays for a minute, and
// that the counts are those of the tasks.
func (l *life) checkWaiting(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	counts := map[string]int32{}
	was := map[types.UID]*frameworkv1.TaskStatus{}
	if before != nil {
		was = tasksByUID(before)
	}
	for uid, task := range tasksByUID(after) {
		waiting, name := task.AttemptStatus.Waiting, task.AttemptStatus.PodName
		if (waiting != nil || task.AttemptStatus.PreparingSince != nil) && task.State != frameworkv1.TaskAttemptPreparing {
			l.t.Errorf("task %s waits, and does not prepare: %s", name, transcript(after))
		}
		if waiting == nil {
			continue
		}
		if task.AttemptStatus.CompletionStatus == nil {
			counts[waiting.Reason]++
		}
		old := was[uid]
		if old == nil || old.State != task.State || old.AttemptStatus.Waiting == nil || old.AttemptStatus.ID != task.AttemptStatus.ID ||
			!old.TransitionTime.Equal(&task.TransitionTime) {
			continue
		}
		if since := old.AttemptStatus.Waiting.Since; old.AttemptStatus.Waiting.Reason != waiting.Reason && l.now.Sub(since.Time) < time.Minute {
			l.t.Errorf("task %s waits for %s, after %v for %s", name, waiting.Reason, l.now.Sub(since.Time), old.AttemptStatus.Waiting.Reason)
		}
	}
	told := map[string]int32{}
	for _, count := range after.Waiting {
		told[count.Reason] = count.Tasks
	}
	if diff := cmp.Diff(counts, told); diff != "" {
		l.t.Errorf("waits are counted wrongly (-want +got):\n%s\n%s", diff, transcript(after))
	}
}

// checkPreparingEnd holds that a task ends by its role's preparingTimeoutSeconds only when it
// has been waiting for so long by what is persisted, and that a member of a gang has a place.
func (l *life) checkPreparingEnd(seen Snapshot, plan Plan) {
	l.t.Helper()
	if plan.Status == nil || seen.Status == nil || seen.Persisted == nil || plan.Status.AttemptStatus.TaskAttempts.Failures == 0 {
		return
	}
	before, persisted := tasksByUID(seen.Status), tasksByUID(seen.Persisted)
	for _, role := range plan.Status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			end, old := task.AttemptStatus.CompletionStatus, before[task.InstanceUID]
			if end == nil || end.Code != frameworkv1.CodePodPreparingTimeout || old == nil ||
				old.AttemptStatus.ID == task.AttemptStatus.ID && old.AttemptStatus.CompletionStatus != nil {
				continue
			}
			timeout := time.Duration(0)
			for _, spec := range seen.Framework.Spec.TaskRoles {
				if spec.Name == role.Name {
					timeout = seconds(spec.PreparingTimeoutSeconds)
				}
			}
			written := persisted[task.InstanceUID]
			pod := seen.Pods[task.AttemptStatus.PodName]
			switch {
			case timeout == 0 || written == nil || written.AttemptStatus.PreparingSince == nil ||
				l.now.Sub(written.AttemptStatus.PreparingSince.Time) < timeout:
				l.t.Errorf("task %s ends by a timeout of %v that is not over: %s", task.AttemptStatus.PodName, timeout, transcript(plan.Status))
			case pod == nil || pod.Status.Phase != corev1.PodPending:
				l.t.Errorf("task %s ends by a timeout, and its Pod is not Pending: %s", task.AttemptStatus.PodName, transcript(plan.Status))
			case pod.Spec.NodeName == "" && plan.Status.AttemptStatus.Gang.Enabled:
				l.t.Errorf("task %s of a gang ends by a timeout, and waits in line: %s", task.AttemptStatus.PodName, transcript(plan.Status))
			}
		}
	}
}

// tellWait is a scheduler or a kubelet that says for what a Pod waits.
func (l *life) tellWait(name string) {
	pod := l.pods[name]
	if pod == nil || pod.Status.Phase != corev1.PodPending {
		return
	}
	reason := []string{"ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", ""}[l.random.IntN(4)]
	if pod.Spec.NodeName == "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
	} else {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	l.podChanged(pod)
}

// disrupt has a Pod end in one of the ways in which Kubernetes ends Pods.
func (l *life) disrupt(name string) {
	pod := l.pods[name]
	if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	ways := podways.Ways()
	way := ways[l.random.IntN(len(ways))]
	if way.Deletes() {
		l.deletePod(name, 30)
	}
	if pod := l.pods[name]; pod != nil {
		way.Happen(pod, l.now)
		l.podChanged(pod)
	}
}
