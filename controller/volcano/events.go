// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// happening is an event on which policies may act. It is derived from the objects and the record in the status, and
// lasts until the controller has reacted. So no event is lost when the controller restarts.
type happening struct {
	event busv1alpha1.Event
	// task is nil for an event of no task.
	task *task
	// index is that of the Pod.
	index int32
	// member is the Pod, nil if it is gone.
	member *member
	// codes are the exit codes of a Pod that failed.
	codes []int32
	// at is the time of the event.
	at time.Time
	// the evidence.
	what string
}

// happenings returns the events of the present version that nothing was done about.
func (d *decision) happenings() []happening {
	var all []happening
	for _, t := range d.tasks {
		if !d.policies[t.place] {
			continue
		}
		for index := range t.spec.Replicas {
			if h, ok := d.happeningOf(t, index); ok {
				all = append(all, h)
			}
		}
		for _, find := range []func(*task) (happening, bool){d.taskCompleted, d.taskFailed} {
			if h, ok := find(t); ok {
				all = append(all, h)
			}
		}
	}
	if h, ok := d.gangUnknown(); ok {
		all = append(all, h)
	}
	return all
}

// happeningOf returns the event of an index: a failed, lost, evicted or waiting Pod; false if there is none.
func (d *decision) happeningOf(t *task, index int32) (happening, bool) {
	m := t.member(index)
	switch {
	case m == nil && t.record.failed.Has(index):
		return d.failedBefore(t, index)
	case m == nil:
		return d.podLost(t, index)
	case m.version != d.next.Version || m.isMarked() || d.isTarget(m):
		return happening{}, false
	case d.isEvicted(m):
		at := d.takenAt(m)
		d.note("lost "+m.Name, at)
		return happening{
			event: busv1alpha1.EventPodEvicted, task: t, index: index, member: m, at: at,
			what: fmt.Sprintf("Pod %s %s", m.Name, podend.Of(m.Pod)),
		}, true
	case d.isTaken(m):
		return d.failedBefore(t, index)
	case m.Status.Phase == corev1.PodFailed:
		return happening{
			event: busv1alpha1.EventPodFailed, task: t, index: index, member: m, codes: jobpods.ExitCodes(m.Pod), at: d.endOf(m),
			what: fmt.Sprintf("Pod %s %s", m.Name, podend.Of(m.Pod)),
		}, true
	case m.Status.Phase == corev1.PodPending, m.Status.Phase == "":
		return d.podWaits(m), true
	default:
		return happening{}, false
	}
}

// takenAt returns when the deletion of a Pod was requested, or when the cluster ended the Pod.
func (d *decision) takenAt(m *member) time.Time {
	if jobpods.IsBeingDeleted(m.Pod) {
		return jobpods.DeletionTime(m.Pod)
	}
	return d.endOf(m)
}

// podLost returns the event that a Pod is gone, and that the controller has not seen how it ended.
func (d *decision) podLost(t *task, index int32) (happening, bool) {
	if !t.record.there.Has(index) {
		return happening{}, false
	}
	name := podName(d.Job.Name, t.spec.Name, index)
	h := happening{event: busv1alpha1.EventPodEvicted, task: t, index: index, what: fmt.Sprintf("Pod %s is gone", name)}
	if m, ok := t.record.lost[index]; ok {
		h.at = time.Unix(m.at, 0)
	} else {
		h.at = d.since("lost "+name, time.Time{})
	}
	return h, true
}

// podWaits returns the event that a Pod does not run yet. If the Pod replaces an evicted Pod, the event is the
// eviction, unless a policy has an action for Pods that wait.
func (d *decision) podWaits(m *member) happening {
	waits := happening{
		event: busv1alpha1.EventPodPending, task: m.task, index: m.index, member: m, at: m.CreationTimestamp.Time,
		what: fmt.Sprintf("Pod %s has not run", m.Name),
	}
	since, err := time.Parse(time.RFC3339, m.Annotations[KeyEvictedAt])
	if err != nil {
		return waits
	}
	lost := happening{
		event: busv1alpha1.EventPodEvicted, task: m.task, index: m.index, member: m, at: since,
		what: fmt.Sprintf("Pod %s was evicted, and has not run again", m.Name),
	}
	policy := d.policyFor(lost)
	if policy == nil || policy.delay == 0 {
		return waits // It was dealt with when it happened.
	}
	if other := d.policyFor(waits); other != nil && other.Action != policy.Action {
		return waits
	}
	return lost
}

// taskCompleted returns the event that all Pods of a task have succeeded. After the controller has handled it, the
// event can happen again only when one of the Pods was created again.
func (d *decision) taskCompleted(t *task) (happening, bool) {
	if t.spec.Replicas == 0 || t.record.succeeded.Count() < t.spec.Replicas {
		return happening{}, false
	}
	h := happening{event: busv1alpha1.EventTaskCompleted, task: t, what: fmt.Sprintf("All %d Pods of task %s have succeeded", t.spec.Replicas, t.spec.Name)}
	for _, m := range t.members {
		if m.version != d.next.Version || d.standing(m) != ended {
			continue
		}
		if at := d.endOf(m); h.member == nil || at.After(h.at) {
			h.member, h.index, h.at = m, m.index, at
		}
	}
	if done := t.record.done; done != nil && (h.member == nil || done.at > h.at.Unix()) {
		h.member, h.index, h.at = t.member(done.index), done.index, time.Unix(done.at, 0)
		return h, true // The last Pod is gone, and an action is to follow.
	}
	return h, h.member != nil
}

// taskFailed returns the event that the containers of a task's Pods were restarted maxRetry times in all. After the
// controller has handled it, the event can happen again only when a Pod of the task was created again. While a Pod is
// missing, the event does not happen.
func (d *decision) taskFailed(t *task) (happening, bool) {
	h := happening{event: busv1alpha1.EventTaskFailed, task: t}
	restarts, most, last := int32(0), int32(-1), time.Time{}
	for index := range t.spec.Replicas {
		if t.record.ended(index) {
			continue
		}
		m := t.member(index)
		if m == nil || d.standing(m) != alive {
			return happening{}, false
		}
		if m.Status.Phase != corev1.PodRunning && m.Status.Phase != corev1.PodPending {
			continue
		}
		n := jobpods.Restarts(m.Pod)
		restarts += n
		if at := restartTime(m.Pod); at.After(last) {
			last = at
		}
		if n > most {
			most, h.member, h.index = n, m, index
		}
	}
	if h.member == nil || restarts < t.spec.MaxRetry {
		return happening{}, false
	}
	h.at = d.since("restarts of "+t.spec.Name, last)
	h.what = fmt.Sprintf("Containers of task %s were restarted %d times, maxRetry is %d", t.spec.Name, restarts, t.spec.MaxRetry)
	return h, true
}

// gangUnknown returns a gang without room for lost members.
func (d *decision) gangUnknown() (happening, bool) {
	group := d.podGroup()
	if group == nil || group.Status.Phase != schedulingv1alpha1.PodGroupUnknown {
		return happening{}, false
	}
	h := happening{event: busv1alpha1.EventUnknown, at: d.since("unknown "+group.Name, time.Time{}), what: "The gang has lost Pods and has no place for them"}
	waits := podgroup.Condition(group, schedulingv1alpha1.ConditionUnschedulable)
	if waits != nil && waits.Status == metav1.ConditionTrue {
		h.at = waits.LastTransitionTime.Time
		h.what += ": " + waits.Message
	}
	return h, true
}

// target returns what a restart of a part restarts.
func (h happening) target(action busv1alpha1.Action) (target, bool) {
	switch {
	case h.task == nil:
		return target{}, false
	case action == busv1alpha1.ActionRestartTask:
		return target{action: action, task: h.task.spec.Name}, true
	case action == busv1alpha1.ActionRestartPod:
		return target{action: action, task: h.task.spec.Name, number: h.index}, true
	case action == busv1alpha1.ActionRestartPartition && h.task.spec.PartitionPolicy != nil:
		return target{action: action, task: h.task.spec.Name, number: h.index / max(1, h.task.spec.PartitionPolicy.PartitionSize)}, true
	default:
		return target{}, false
	}
}

// restartTime returns when a container of a Pod last ended and was restarted; zero if none was restarted, or the time
// is not known.
func restartTime(pod *corev1.Pod) time.Time {
	last := time.Time{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.LastTerminationState.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	return last
}

// endOf returns when a Pod ended, by its node's clock. If that time is in the future, endOf returns when this
// controller first saw the end, so that delays are not prolonged.
func (d *decision) endOf(m *member) time.Time {
	told, what := jobpods.FinishTime(m.Pod), "ended "+string(m.UID)
	if _, ahead := d.Memory.Since[what]; !ahead && !told.After(d.clock) {
		return told
	}
	at := d.since(what, told)
	if noted, ok := m.task.record.waits[m.index]; ok && noted.at < at.Unix() {
		return time.Unix(noted.at, 0) // Another controller has seen it.
	}
	if done := m.task.record.done; done != nil && done.index == m.index && done.at < at.Unix() {
		return time.Unix(done.at, 0)
	}
	return at
}

// since returns when this process first observed `what`. If the process was restarted after that, the result is `told`,
// the time in the objects; if `told` is zero or in the future, it is now.
func (d *decision) since(what string, told time.Time) time.Time {
	at, ok := d.Memory.Since[what]
	switch {
	case ok:
	case told.IsZero() || told.After(d.clock):
		at = d.clock
	default:
		at = told
	}
	d.note(what, at)
	return at
}

// sinceOnRecord converts a time in the status to this controller's clock. If the time is in the future, the controller
// that wrote it had a clock that is ahead. In that case sinceOnRecord returns when this controller first saw the event,
// so that delays are not prolonged.
func (d *decision) sinceOnRecord(at metav1.Time) time.Time {
	return d.since("on record "+strconv.FormatInt(at.Unix(), 10), at.Time)
}

// note remembers since when something holds.
func (d *decision) note(what string, at time.Time) {
	if d.memory.Since == nil {
		d.memory.Since = map[string]time.Time{}
	}
	d.memory.Since[what] = at
}

func withCodes(codes []int32) string {
	if len(codes) == 0 {
		return ""
	}
	shown := make([]string, len(codes))
	for i, code := range codes {
		shown[i] = fmt.Sprint(code)
	}
	return " with exit code " + strings.Join(shown, ", ")
}

// isRestartOfPart reports whether an action restarts less than the Job.
func isRestartOfPart(action busv1alpha1.Action) bool {
	return action == busv1alpha1.ActionRestartTask || action == busv1alpha1.ActionRestartPod ||
		action == busv1alpha1.ActionRestartPartition
}

// target is the part of a Job that is restarted: the Job, a task, a partition or a Pod. During the restart, the message
// of the Job's state names the target.
type target struct {
	action busv1alpha1.Action
	task   string
	// number is the Pod's index, or the partition's number.
	number int32
}

// whole is all of the Job.
var wholeJob = target{}

// String returns the target in the form of the state's message.
func (t target) String() string {
	if t.action == busv1alpha1.ActionRestartTask {
		return fmt.Sprintf("%s %s", t.action, t.task)
	}
	return fmt.Sprintf("%s %s %d", t.action, t.task, t.number)
}

// readTarget finds the target in the message of a state that entered Restarting.
func readTarget(message string) (target, bool) {
	head, _, found := strings.Cut(message, ": ")
	if !found {
		return target{}, false
	}
	var t target
	fields := strings.Fields(head)
	if len(fields) < 2 {
		return target{}, false
	}
	t.action, t.task = busv1alpha1.Action(fields[0]), fields[1]
	if !isRestartOfPart(t.action) {
		return target{}, false
	}
	if t.action == busv1alpha1.ActionRestartTask {
		return t, len(fields) == 2
	}
	if len(fields) != 3 {
		return target{}, false
	}
	if _, err := fmt.Sscan(fields[2], &t.number); err != nil {
		return target{}, false
	}
	return t, true
}

// has reports whether an index of a task is part of the target.
func (t target) has(of *task, index int32) bool {
	if t == wholeJob {
		return true
	}
	first, end := t.span(of)
	return of.spec.Name == t.task && first <= index && index < end
}

// span returns the range of a task's indexes that belong to the target: from first up to, but not including, end.
func (t target) span(of *task) (first, end int32) {
	policy := of.spec.PartitionPolicy
	switch {
	case t.action == busv1alpha1.ActionRestartTask:
		return 0, math.MaxInt32
	case t.action == busv1alpha1.ActionRestartPod && t.number < math.MaxInt32:
		return t.number, t.number + 1
	case t.action == busv1alpha1.ActionRestartPartition && policy != nil:
		size := max(1, policy.PartitionSize)
		return multiply(t.number, size), multiply(addUp(t.number, 1), size)
	default:
		return 0, 0
	}
}

// isOf reports whether a Pod belongs to a target that is not the whole Job.
func (t target) isOf(m *member) bool { return t != wholeJob && t.has(m.task, m.index) }

// taskOf finds a task by name.
func (d *decision) taskOf(name string) *task {
	i := slices.IndexFunc(d.tasks, func(t *task) bool { return t.spec.Name == name })
	if i < 0 {
		return nil
	}
	return d.tasks[i]
}
