// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// checkWrite holds what must be true of every status that anyone can see.
func (l *life) checkWrite(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	if l.verbose {
		l.t.Logf("write %s", transcript(after))
	}
	l.checkCounts("the Framework", after.AttemptStatus.ID, after.RetryPolicyStatus)
	l.checkNoneRuns(after)
	l.checkEnds(after)
	l.checkRecorded(before, after)
	l.checkConditions(before, after)
	l.checkHistory(before, after)
	l.checkWaiting(before, after)
	for _, role := range after.AttemptStatus.TaskRoleStatuses {
		for i, task := range role.TaskStatuses {
			if int(task.Index) != i {
				l.t.Errorf("task %s[%d] has the index %d", role.Name, i, task.Index)
			}
			l.checkCounts(task.AttemptStatus.PodName, task.AttemptStatus.ID, task.RetryPolicyStatus)
		}
	}
	if before == nil {
		if after.State != frameworkv1.FrameworkAttemptCreationPending || after.AttemptStatus.ID != 0 {
			l.t.Errorf("the first status is %s", transcript(after))
		}
		return
	}
	l.checkProgress(before, after)
	l.checkVerdict(before, after)
}

func (l *life) checkCounts(who string, attempt int32, retries frameworkv1.RetryPolicyStatus) {
	l.t.Helper()
	if attempt != retries.TotalRetriedCount || retries.AccountableRetriedCount > retries.TotalRetriedCount {
		l.t.Errorf("%s: attempt %d after %d retries, of which %d count", who, attempt,
			retries.TotalRetriedCount, retries.AccountableRetriedCount)
	}
}

// checkNoneRuns holds the consistency guarantees 2 and 4: nothing is there of a
// task or an attempt that is over or does not exist. Guarantees 1 and 3, that at
// most one is there, follow from it with the checks of every creation.
func (l *life) checkNoneRuns(after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	gone := after.State == frameworkv1.FrameworkAttemptCompleted || after.State == frameworkv1.FrameworkCompleted
	if gone && (l.configMap != nil || len(l.pods) > 0) {
		l.t.Errorf("%s while ConfigMap %v and Pods %v are there", transcript(after), l.configMap != nil, l.podNames())
	}
	for name := range l.pods {
		task := taskNamed(after, name)
		if task == nil || task.State == frameworkv1.TaskAttemptCompleted || task.State == frameworkv1.TaskCompleted {
			l.t.Errorf("%s while Pod %s is there", transcript(after), name)
		}
	}
}

// checkEnds holds that the end of an attempt is that of all its tasks.
func (l *life) checkEnds(after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	rank := frameworkRank(after.State)
	for uid, task := range tasksByUID(after) {
		if rank >= frameworkRank(frameworkv1.FrameworkAttemptCompleted) && task.State != frameworkv1.TaskCompleted {
			l.t.Errorf("task %s (%s) goes on: %s", task.AttemptStatus.PodName, uid, transcript(after))
		}
		decided := after.State == frameworkv1.FrameworkAttemptDeletionPending || after.State == frameworkv1.FrameworkAttemptDeletionRequested
		// A retry that was due all the same has begun, but gets no Pod any more.
		waits := task.State == frameworkv1.TaskAttemptCreationPending
		if decided && !waits && task.AttemptStatus.CompletionStatus == nil {
			l.t.Errorf("task %s (%s) has no end: %s", task.AttemptStatus.PodName, uid, transcript(after))
		}
	}
}

// checkConditions holds that they say what the status says, and that nobody else's is
// lost.
func (l *life) checkConditions(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	is := func(conditionType string, want bool) {
		l.t.Helper()
		condition := meta.FindStatusCondition(after.Conditions, conditionType)
		if condition == nil || want != (condition.Status == metav1.ConditionTrue) {
			l.t.Errorf("the condition %s is %+v, want %v: %s", conditionType, condition, want, transcript(after))
		}
	}
	is(frameworkv1.ConditionRunning, after.Tasks.Running > 0)
	is(frameworkv1.ConditionCompleted, after.State == frameworkv1.FrameworkCompleted)
	blocked := meta.FindStatusCondition(after.Conditions, frameworkv1.ConditionTasksBlocked)
	if decided := after.AttemptStatus.CompletionStatus != nil; decided && blocked != nil && blocked.Reason != frameworkv1.ReasonWaiting {
		l.t.Errorf("creations are blocked of an attempt that has ended: %s: %s", blocked.Message, transcript(after))
	}
	if before == nil {
		return
	}
	for _, condition := range before.Conditions {
		kept := meta.FindStatusCondition(after.Conditions, condition.Type)
		if !slices.Contains(ownConditions, condition.Type) && !apiequality.Semantic.DeepEqual(&condition, kept) {
			l.t.Errorf("the condition %s of somebody else is lost: %s", condition.Type, transcript(after))
		}
	}
}

// checkRecorded holds that an object whose UID is recorded is the one that the status
// before was waiting for.
func (l *life) checkRecorded(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	recorded := objectUIDs(before)
	for name, pod := range l.pods {
		task := taskNamed(after, name)
		if task == nil || recorded[pod.UID] || !ptr.Equal(task.AttemptStatus.PodUID, &pod.UID) {
			continue
		}
		if pod.Annotations[frameworkv1.KeyTaskUID] != string(task.InstanceUID) ||
			pod.Annotations[frameworkv1.KeyTaskAttemptID] != strconv.Itoa(int(task.AttemptStatus.ID)) ||
			pod.Annotations[frameworkv1.KeyConfigMapUID] != string(*after.AttemptStatus.ConfigMapUID) {
			l.t.Errorf("the Pod %s of another task is recorded: %s", name, transcript(after))
		}
	}
	if l.configMap != nil && !recorded[l.configMap.UID] && ptr.Equal(after.AttemptStatus.ConfigMapUID, &l.configMap.UID) &&
		l.configMap.Annotations[frameworkv1.KeyFrameworkAttemptID] != strconv.Itoa(int(after.AttemptStatus.ID)) {
		l.t.Errorf("the ConfigMap of another attempt is recorded: %s", transcript(after))
	}
}

func objectUIDs(status *frameworkv1.FrameworkStatus) map[types.UID]bool {
	uids := map[types.UID]bool{}
	if status == nil {
		return uids
	}
	if uid := status.AttemptStatus.ConfigMapUID; uid != nil {
		uids[*uid] = true
	}
	for _, task := range tasksByUID(status) {
		if uid := task.AttemptStatus.PodUID; uid != nil {
			uids[*uid] = true
		}
	}
	return uids
}

// checkProgress holds that no write goes back in time, that an end is never
// changed, and that marked tasks stay marked.
func (l *life) checkProgress(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	fail := func(what string) {
		l.t.Helper()
		l.t.Errorf("%s:\nbefore %s\nafter  %s", what, transcript(before), transcript(after))
	}
	attempt, next := &before.AttemptStatus, &after.AttemptStatus
	if !after.StartTime.Equal(&before.StartTime) || after.TransitionTime.Before(&before.TransitionTime) {
		fail("time goes back")
	}
	switch {
	case next.ID < attempt.ID || next.ID > attempt.ID+1:
		fail("attempts are out of order")
	case next.ID == attempt.ID+1:
		stopped := l.framework.Spec.ExecutionType == frameworkv1.ExecutionStop
		if !stopped && triedTooEarly(before.TransitionTime, next.StartTime, after.RetryPolicyStatus) {
			fail("an attempt begins before its delay is over")
		}
		if before.State != frameworkv1.FrameworkAttemptCompleted {
			fail("an attempt is followed by another before it is over")
		}
		return
	}
	if frameworkRank(after.State) < frameworkRank(before.State) {
		fail("the Framework's state goes back")
	}
	if attempt.Gang != nil && !apiequality.Semantic.DeepEqual(attempt.Gang, next.Gang) {
		fail("the attempt becomes a gang, or another one, or none")
	}
	if attempt.ConfigMapUID != nil && !ptr.Equal(attempt.ConfigMapUID, next.ConfigMapUID) {
		fail("the attempt has another ConfigMap")
	}
	if end := attempt.CompletionStatus; end != nil && !apiequality.Semantic.DeepEqual(end, next.CompletionStatus) {
		fail("the attempt's end changes: " + cmp.Diff(end, next.CompletionStatus))
	}
	begun := before.State != frameworkv1.FrameworkAttemptCreationPending
	tasks := tasksByUID(after)
	for uid, task := range tasksByUID(before) {
		if tasks[uid] == nil {
			if begun && (!task.DeletionPending || task.State != frameworkv1.TaskCompleted) {
				fail("task " + task.AttemptStatus.PodName + " is removed before it is deleted")
			}
			continue
		}
		if broken := taskRegress(task, tasks[uid]); broken != "" {
			fail("task " + task.AttemptStatus.PodName + ": " + broken)
		}
	}
}

// taskRegress says in what a task has gone back, if it has.
func taskRegress(before, after *frameworkv1.TaskStatus) string {
	attempt, next := &before.AttemptStatus, &after.AttemptStatus
	backFromRunning := before.State == frameworkv1.TaskAttemptRunning && after.State == frameworkv1.TaskAttemptPreparing
	switch {
	case before.DeletionPending && !after.DeletionPending:
		return "its mark is gone"
	case after.TransitionTime.Before(&before.TransitionTime):
		return "time goes back"
	case next.ID < attempt.ID:
		return "attempts are out of order"
	case next.ID > attempt.ID:
		if before.State != frameworkv1.TaskAttemptCompleted {
			return "an attempt is followed by another before it is over"
		}
		if !after.DeletionPending && triedTooEarly(before.TransitionTime, next.StartTime, after.RetryPolicyStatus) {
			return "an attempt begins before its delay is over"
		}
		if attempt.PodUID == nil && after.RetryPolicyStatus.BackoffSec == 0 {
			return "an attempt that could not create a Pod has no back-off"
		}
		return ""
	case taskRank(after.State) < taskRank(before.State) && !backFromRunning:
		return "its state goes back"
	case attempt.PodUID != nil && !ptr.Equal(attempt.PodUID, next.PodUID):
		return "the attempt has another Pod"
	case attempt.CompletionStatus != nil && !apiequality.Semantic.DeepEqual(attempt.CompletionStatus, next.CompletionStatus):
		return "the attempt's end changes"
	default:
		return ""
	}
}

// triedTooEarly says whether less than half of the back-off has passed since an attempt
// was over.
func triedTooEarly(over, begun metav1.Time, retries frameworkv1.RetryPolicyStatus) bool {
	return begun.Sub(over.Time) < time.Duration(retries.BackoffSec/2)*time.Second
}

// checkGangEnd holds that a gang ends by its recoveryTimeoutSeconds only while a task
// that was there once is refused, or has a Pod without a place.
func (l *life) checkGangEnd(seen Snapshot, plan Plan) {
	l.t.Helper()
	if plan.Status == nil || seen.Status == nil || seen.Status.AttemptStatus.CompletionStatus != nil {
		return
	}
	end := plan.Status.AttemptStatus.CompletionStatus
	if end == nil || end.Code != frameworkv1.CodePodGroupRecoveryTimeout {
		return
	}
	for _, role := range plan.Status.AttemptStatus.TaskRoleStatuses {
		refused := slices.ContainsFunc(seen.Blocked, func(b Block) bool { return b.Group == role.Name })
		for _, task := range role.TaskStatuses {
			pod := seen.Pods[task.AttemptStatus.PodName]
			homeless := pod != nil && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
			wasThere := task.RunTime != nil || task.RetryPolicyStatus.TotalRetriedCount > 0
			if wasThere && !task.DeletionPending && (homeless || refused && pod == nil) {
				return
			}
		}
	}
	l.t.Errorf("the gang ends, and waits for nothing: %s", transcript(plan.Status))
}

// checkRuntimeEnd holds that an attempt ends by the limit of its run time only after that limit, by what is written of it,
// and that no limit grows within an attempt.
func (l *life) checkRuntimeEnd(seen Snapshot, plan Plan) {
	l.t.Helper()
	if plan.Status == nil || seen.Status == nil || seen.Persisted == nil || seen.Status.AttemptStatus.ID != plan.Status.AttemptStatus.ID {
		return
	}
	before, after := seen.Status.AttemptStatus.RuntimeLimit, plan.Status.AttemptStatus.RuntimeLimit
	if before != nil && (after == nil || after.Seconds > before.Seconds || !after.Since.Equal(&before.Since)) {
		l.t.Errorf("the limit %v becomes %v", before, after)
	}
	end := plan.Status.AttemptStatus.CompletionStatus
	if end == nil || end.Code != frameworkv1.CodeRuntimeLimitExceeded || seen.Status.AttemptStatus.CompletionStatus != nil {
		return
	}
	written := seen.Persisted.AttemptStatus.RuntimeLimit
	if written == nil || l.now.Before(written.Since.Add(time.Duration(written.Seconds)*time.Second)) {
		l.t.Errorf("at %v the attempt ends by the limit %v: %s", l.now, written, transcript(plan.Status))
	}
}

func frameworkRank(state frameworkv1.FrameworkState) int {
	return slices.Index([]frameworkv1.FrameworkState{
		frameworkv1.FrameworkAttemptCreationPending, frameworkv1.FrameworkAttemptCreationRequested,
		frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning,
		frameworkv1.FrameworkAttemptDeletionPending, frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting, frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted,
	}, state)
}

func taskRank(state frameworkv1.TaskState) int {
	return slices.Index([]frameworkv1.TaskState{
		frameworkv1.TaskAttemptCreationPending, frameworkv1.TaskAttemptCreationRequested,
		frameworkv1.TaskAttemptPreparing, frameworkv1.TaskAttemptRunning,
		frameworkv1.TaskAttemptDeletionPending, frameworkv1.TaskAttemptDeletionRequested,
		frameworkv1.TaskAttemptDeleting, frameworkv1.TaskAttemptCompleted, frameworkv1.TaskCompleted,
	}, state)
}

// checkVerdict holds the first rescale guarantee: a verdict of the completion
// policy counts the tasks that the spec with that policy wants, and the new scale
// was seen before it.
func (l *life) checkVerdict(before, after *frameworkv1.FrameworkStatus) {
	l.t.Helper()
	end := after.AttemptStatus.CompletionStatus
	if before.AttemptStatus.CompletionStatus != nil || end == nil || end.Trigger == nil {
		return
	}
	// The write of a verdict may have failed, and the user changed the spec since.
	spec := l.controller.verdictOn
	if !followsScale(spec, before) || !followsScale(spec, after) {
		l.t.Errorf("%s is decided before the scale is written: %s", end.Trigger.Message, transcript(before))
	}
	trigger := taskNamed(after, frameworkv1.PodName(l.framework.Name, end.Trigger.TaskRoleName, end.Trigger.TaskIndex))
	if trigger == nil || trigger.DeletionPending || trigger.State != frameworkv1.TaskCompleted {
		l.t.Errorf("%s is decided by a task that does not count: %s", end.Trigger.Message, transcript(after))
	}
	if !verdictIsDue(spec, after) {
		l.t.Errorf("%s is decided too early: %s", end.Trigger.Message, transcript(after))
	}
}

// verdictIsDue counts anew whether some threshold is reached, or all is over.
func verdictIsDue(f *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) bool {
	all := true
	for _, spec := range f.Spec.TaskRoles {
		var failed, succeeded int32
		for _, role := range status.AttemptStatus.TaskRoleStatuses {
			for _, task := range role.TaskStatuses {
				switch {
				case role.Name != spec.Name || task.DeletionPending:
				case task.State != frameworkv1.TaskCompleted:
					all = false
				case task.AttemptStatus.CompletionStatus.Code == frameworkv1.CodeSucceeded:
					succeeded++
				default:
					failed++
				}
			}
		}
		policy := spec.FrameworkAttemptCompletionPolicy
		if least := *policy.MinFailedTaskCount; least > 0 && failed >= least {
			return true
		}
		if least := *policy.MinSucceededTaskCount; least > 0 && succeeded >= least {
			return true
		}
	}
	return all
}

// followsScale says whether a status has the tasks of the spec, and others only
// if they are marked. A marked one may still hold the place of a wanted one.
func followsScale(f *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) bool {
	missing := map[string]bool{}
	for _, spec := range f.Spec.TaskRoles {
		for index := range spec.TaskNumber {
			missing[frameworkv1.PodName(f.Name, spec.Name, index)] = true
		}
	}
	for _, task := range tasksByUID(status) {
		if name := task.AttemptStatus.PodName; missing[name] {
			delete(missing, name)
		} else if !task.DeletionPending {
			return false
		}
	}
	return len(missing) == 0
}

// checkEnd holds that a Framework that is left alone comes to its end, and that
// nothing of it is left behind.
func (l *life) checkEnd() {
	l.t.Helper()
	if l.written != nil && l.framework.DeletionTimestamp == nil {
		l.t.Errorf("after peace the Framework is %s, want Completed and deleted", transcript(l.written))
	}
	if len(l.pods) > 0 || l.configMap != nil {
		l.t.Errorf("Pods [%s] and ConfigMap %v are left behind", strings.Join(l.podNames(), " "), l.configMap)
	}
}

func tasksByUID(status *frameworkv1.FrameworkStatus) map[types.UID]*frameworkv1.TaskStatus {
	tasks := map[types.UID]*frameworkv1.TaskStatus{}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			tasks[task.InstanceUID] = task
		}
	}
	return tasks
}

func taskNamed(status *frameworkv1.FrameworkStatus, podName string) *frameworkv1.TaskStatus {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			if task.AttemptStatus.PodName == podName {
				return task
			}
		}
	}
	return nil
}
