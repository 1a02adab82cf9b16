// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Conditions are made anew from the rest of the decision in each round. Nothing depends on conditions, so they never
// make a write urgent; and a condition that is again what the API server has is no change, however often it came and
// went in between.

// ownConditions are the types of all conditions that the controller writes. Other conditions in the status belong to
// other programs. Decisions make all of these but the last: StatusTooLarge is added when a status is shortened, and no
// decision reads it.
var ownConditions = []string{
	frameworkv1.ConditionRunning,
	frameworkv1.ConditionCompleted,
	frameworkv1.ConditionTasksBlocked,
	frameworkv1.ConditionGangScheduled,
	frameworkv1.ConditionAdmitted,
	frameworkv1.ConditionUnknownFields,
	frameworkv1.ConditionStatusTooLarge,
}

// Reasons of conditions, where the API names none.
const (
	reasonTasksRunning    = "TasksRunning"
	reasonNoTaskRunning   = "NoTaskRunning"
	reasonNotCompleted    = "NotCompleted"
	reasonNoPodGroup      = "NoPodGroup"
	reasonNotYetScheduled = "NotYetScheduled"
	reasonInQueue         = "InQueue"
	reasonAdmitted        = "Admitted"
)

// MergeConditions returns the controller's own conditions from `own`, followed by conditions of other writers from
// `stored`. It changes neither argument.
func MergeConditions(own, stored []metav1.Condition) []metav1.Condition {
	merged := make([]metav1.Condition, 0, len(own)+len(stored))
	for _, condition := range stored {
		if !slices.Contains(ownConditions, condition.Type) {
			merged = append(merged, condition)
		} else if present := meta.FindStatusCondition(own, condition.Type); present != nil {
			merged = append(merged, *present)
		}
	}
	for _, condition := range own {
		if slices.Contains(ownConditions, condition.Type) && meta.FindStatusCondition(merged, condition.Type) == nil {
			merged = append(merged, condition)
		}
	}
	return merged
}

// setConditions makes the conditions say what the decision says.
func (d *decision) setConditions() {
	var own []metav1.Condition
	for _, condition := range []*metav1.Condition{
		d.runningCondition(), d.completedCondition(), d.blockedCondition(), d.gangCondition(), d.admittedCondition(),
		d.unknownFieldsCondition(),
	} {
		if condition == nil {
			continue
		}
		condition.ObservedGeneration = d.Framework.Generation
		condition.LastTransitionTime = d.transitionOf(condition)
		own = append(own, *condition)
	}
	if d.Persisted == nil {
		d.next.Conditions = own
		return
	}
	d.next.Conditions = MergeConditions(own, d.Persisted.Conditions)
}

// transitionOf returns since when a condition has its present status, as far as observed.
func (d *decision) transitionOf(condition *metav1.Condition) metav1.Time {
	for _, status := range []*frameworkv1.FrameworkStatus{d.Persisted, d.Status} {
		if status == nil {
			continue
		}
		before := meta.FindStatusCondition(status.Conditions, condition.Type)
		if before != nil && before.Status == condition.Status {
			return before.LastTransitionTime
		}
	}
	if condition.Type == frameworkv1.ConditionCompleted && d.next.CompletionTime != nil {
		return *d.next.CompletionTime
	}
	return d.now
}

func (d *decision) runningCondition() *metav1.Condition {
	if d.next.Tasks.Running > 0 {
		return isTrue(frameworkv1.ConditionRunning, reasonTasksRunning, "Tasks of the attempt are running")
	}
	return isFalse(frameworkv1.ConditionRunning, reasonNoTaskRunning, "No task of the attempt is running")
}

func (d *decision) completedCondition() *metav1.Condition {
	if d.next.State != frameworkv1.FrameworkCompleted {
		return isFalse(frameworkv1.ConditionCompleted, reasonNotCompleted, "The Framework has not completed")
	}
	completion := d.next.AttemptStatus.CompletionStatus.CompletionStatus
	reason := frameworkv1.ReasonFailed
	if succeeded(completion) {
		reason = frameworkv1.ReasonSucceeded
	}
	return isTrue(frameworkv1.ConditionCompleted, reason, "The Framework completed with "+describe(completion))
}

// Bounds of messages about blocks: the number of blocks, and the bytes of the message of each.
const (
	mostBlocksTold  = 4
	mostBlockLength = 256
)

// mostRefusalLength bounds the message about a Framework that can't be in a queue.
const mostRefusalLength = 512

// blockedCondition returns the condition about refused creations; nil if there are none. Its reason is that of the
// first refusal. If the condition is new, an event reports it.
func (d *decision) blockedCondition() *metav1.Condition {
	blocks := d.blocks()
	if block, overdue := d.overdueBlock(); overdue {
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		return nil
	}
	var told []string
	for _, block := range blocks[:min(len(blocks), mostBlocksTold)] {
		role := ""
		if block.Group != "" {
			role = "role " + block.Group + ": "
		}
		told = append(told, role+block.Reason+": "+text.Shorten(block.Message, mostBlockLength))
	}
	if more := len(blocks) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	condition := isTrue(frameworkv1.ConditionTasksBlocked, blocks[0].Reason, strings.Join(told, "; "))
	if !d.wasTold(condition) {
		d.Tell(true, condition.Reason, "%s", condition.Message)
	}
	return condition
}

// blocks returns the refused creations of objects that the attempt still needs: first the attempt's own, then those of
// each role.
func (d *decision) blocks() []plan.Block {
	if d.completing() || d.next.State == frameworkv1.FrameworkAttemptCompleted || d.next.State == frameworkv1.FrameworkCompleted {
		return nil
	}
	blocks := slices.Clone(d.Blocked)
	slices.SortFunc(blocks, func(a, b plan.Block) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return slices.DeleteFunc(blocks, func(block plan.Block) bool {
		return block.Group != "" && d.specRoles[block.Group] == nil
	})
}

// overdueBlock returns a block about a Pod that still exists long after a deletion was requested. The task can't have a
// new Pod before the old one is gone.
func (d *decision) overdueBlock() (block plan.Block, overdue bool) {
	if d.next.State == frameworkv1.FrameworkCompleted {
		return plan.Block{}, false
	}
	onRecord := sync.OnceValue(d.deletionsOnRecord)
	since := func(pod *corev1.Pod) (time.Time, bool) {
		if pod.DeletionTimestamp == nil || d.Gone[pod.UID] || d.Forced[pod.UID] {
			return time.Time{}, false
		}
		if at, ok := onRecord()[pod.UID]; ok {
			return at, true
		}
		return d.seenTerminating(pod).Time, true
	}
	message, next := podend.FirstOverdue("Pod", d.Pods, since, d.clock)
	d.WakeAt(next)
	return plan.Block{Reason: frameworkv1.ReasonWaiting, Message: message}, message != ""
}

// deletionsOnRecord returns when the deletions of tasks' Pods began, according to the status. A controller that has
// just started knows no other times.
func (d *decision) deletionsOnRecord() map[types.UID]time.Time {
	since := map[types.UID]time.Time{}
	d.eachTask(func(t cursor) {
		if t.status().State == frameworkv1.TaskAttemptDeleting {
			since[*t.status().AttemptStatus.PodUID] = d.TakenOver.since(t.status().TransitionTime)
		}
	})
	return since
}

// wasTold reports whether a condition with this status and reason is known already.
func (d *decision) wasTold(condition *metav1.Condition) bool {
	return slices.ContainsFunc([]*frameworkv1.FrameworkStatus{d.Persisted, d.Status}, func(status *frameworkv1.FrameworkStatus) bool {
		if status == nil {
			return false
		}
		before := meta.FindStatusCondition(status.Conditions, condition.Type)
		return before != nil && before.Status == condition.Status && before.Reason == condition.Reason
	})
}

// unknownFieldsCondition returns the condition that names the fields of Pod templates that the API server does not
// know. An event reports the condition when it is new. The condition stays until the API server has answered again,
// for instance to a new leader.
func (d *decision) unknownFieldsCondition() *metav1.Condition {
	var before *metav1.Condition
	if d.Persisted != nil {
		before = meta.FindStatusCondition(d.Persisted.Conditions, frameworkv1.ConditionUnknownFields)
	}
	if d.UnknownFields == "" {
		if d.FieldsKnown || before == nil {
			return nil
		}
		return before.DeepCopy()
	}
	condition := isTrue(frameworkv1.ConditionUnknownFields, frameworkv1.ReasonUnknownFields, d.UnknownFields)
	if d.Status != nil {
		before = meta.FindStatusCondition(d.Status.Conditions, condition.Type)
	}
	if before == nil || before.Message != condition.Message {
		d.Tell(true, condition.Reason, "%s", condition.Message)
	}
	return condition
}

// gangCondition mirrors the PodGroup. Only gangs have this condition.
func (d *decision) gangCondition() *metav1.Condition {
	if !d.isGang() {
		return nil
	}
	switch group := d.next.AttemptStatus.PodGroup; {
	case group == nil:
		return isFalse(frameworkv1.ConditionGangScheduled, reasonNoPodGroup, "The attempt has no PodGroup yet")
	case group.Unschedulable != nil:
		return isFalse(frameworkv1.ConditionGangScheduled, group.Unschedulable.Reason, group.Unschedulable.Message)
	case group.EverScheduled:
		return isTrue(frameworkv1.ConditionGangScheduled, schedulingv1alpha1.ReasonScheduled, "The attempt's PodGroup is placed")
	default:
		return isFalse(frameworkv1.ConditionGangScheduled, reasonNotYetScheduled,
			"The scheduler has not yet placed the attempt's PodGroup")
	}
}

// admittedCondition returns the condition that says whether Kueue lets the Framework run; nil if the Framework is in no
// queue. If the Framework can't be in its queue, an event says why.
func (d *decision) admittedCondition() *metav1.Condition {
	queue := d.Framework.Labels[frameworkv1.LabelQueue]
	if !d.Options.Queues || queue == "" || d.next.State == frameworkv1.FrameworkCompleted {
		return nil
	}
	if refusal := d.Framework.Annotations[frameworkv1.AnnotationRefusal]; d.isHeld() && refusal != "" {
		condition := isFalse(frameworkv1.ConditionAdmitted, frameworkv1.ReasonNotAdmissible, text.Shorten(refusal, mostRefusalLength))
		if !d.wasTold(condition) {
			d.Tell(true, ReasonNotAdmissible, "%s", condition.Message)
		}
		return condition
	}
	if d.isHeld() {
		return isFalse(frameworkv1.ConditionAdmitted, reasonInQueue, "The Framework waits in the queue "+text.Shorten(queue, mostBlockLength)+" of Kueue")
	}
	return isTrue(frameworkv1.ConditionAdmitted, reasonAdmitted, "Kueue has admitted the Framework")
}

func isTrue(conditionType, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(conditionType, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
