// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// FieldManager is the name under which the plugin applies conditions.
const FieldManager = "lockstep-scheduler"

// Bindings come first: they share the API server with the writers. So markWriters
// is small, as marking members is never urgent, and while members are being bound
// all groupWriters but one rest.
const (
	groupWriters = 4
	markWriters  = 2
	restPeriod   = 20 * time.Millisecond
)

// reporter writes what is known of gangs to the API server: conditions of
// PodGroups and, once for each member that waits for room, PodScheduled=False,
// which is what cluster autoscalers look for; and to Pods that wait in vain why. It is
// off the scheduling goroutine, and a key that is queued twice is one write.
type reporter struct {
	tracker *tracker // set before run
	// binding says whether members are being bound. It is set before run.
	binding  func() bool
	client   schedulingclient.Interface
	pods     kubernetes.Interface
	recorder events.EventRecorderLogger
	groups   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	marks    workqueue.TypedRateLimitingInterface[memberKey]
}

// memberKey is a member, or a stranger, to mark.
type memberKey struct {
	gang types.NamespacedName
	uid  types.UID
}

func newReporter(client schedulingclient.Interface, pods kubernetes.Interface, recorder events.EventRecorderLogger) *reporter {
	return &reporter{
		client:   client,
		pods:     pods,
		recorder: recorder,
		groups: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 30*time.Second),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "lockstep_pod_group_conditions"}),
		marks: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[memberKey](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[memberKey]{Name: "lockstep_unschedulable_members"}),
	}
}

// run writes until ctx ends.
func (r *reporter) run(ctx context.Context) {
	never := func() bool { return false }
	go work(ctx, r.groups, never, r.reportOn)
	for range groupWriters - 1 {
		go work(ctx, r.groups, r.binding, r.reportOn)
	}
	for range markWriters {
		go work(ctx, r.marks, never, r.markMember)
	}
	<-ctx.Done()
	r.groups.ShutDown()
	r.marks.ShutDown()
}

// work handles the keys of a queue, and those that fail again later. It begins no
// other key while rest says so.
func work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], rest func() bool,
	handle func(context.Context, K) error) {
	logger := klog.FromContext(ctx)
	for {
		err := wait.PollUntilContextCancel(ctx, restPeriod, true, func(context.Context) (bool, error) { return !rest(), nil })
		if err != nil {
			return // the scheduler ends
		}
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := handle(ctx, key); err != nil && ctx.Err() == nil {
			logger.Error(err, "Reporting on a pod group failed, trying again")
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// reportOn brings a PodGroup's conditions up to date and has members marked.
func (r *reporter) reportOn(ctx context.Context, key types.NamespacedName) error {
	if err := r.writeConditions(ctx, key); err != nil {
		return err
	}
	r.tellCapped(ctx, key)
	for _, uid := range r.tracker.unmarked(key) {
		r.marks.Add(memberKey{gang: key, uid: uid})
	}
	for _, waitInVain := range []func(types.NamespacedName) ([]types.UID, time.Duration){r.tracker.unmarkedStrangers, r.tracker.unmarkedGroupless} {
		unmarked, later := waitInVain(key)
		for _, uid := range unmarked {
			r.marks.Add(memberKey{gang: key, uid: uid})
		}
		if later > 0 {
			r.groups.AddAfter(key, later)
		}
	}
	return nil
}

func (r *reporter) writeConditions(ctx context.Context, key types.NamespacedName) error {
	group, conditions, wait := r.tracker.news(key)
	if wait > 0 {
		r.groups.AddAfter(key, wait)
	}
	if group == nil {
		return nil
	}
	apply := applyv1alpha1.PodGroup(group.Name, group.Namespace).WithUID(group.UID)
	status := applyv1alpha1.PodGroupStatus()
	for _, c := range conditions {
		status.WithConditions(applyv1alpha1.PodGroupCondition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithTransitionID(c.TransitionID).WithLastTransitionTime(c.LastTransitionTime).
			WithObservedGeneration(c.ObservedGeneration))
	}
	_, err := r.client.SchedulingV1alpha1().PodGroups(group.Namespace).
		ApplyStatus(ctx, apply.WithStatus(status), metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// It is gone, or another one has its name.
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing conditions of PodGroup %s: %w", key, err)
	}
	r.recordChange(ctx, group, conditions)
	r.tracker.wrote(key, group.UID, conditions)
	return nil
}

// recordChange tells of a change of the conditions on the PodGroup itself, for kubectl
// describe.
func (r *reporter) recordChange(ctx context.Context, group *schedulingv1alpha1.PodGroup, conditions []schedulingv1alpha1.PodGroupCondition) {
	c := findCondition(conditions, schedulingv1alpha1.ConditionScheduled)
	kind := corev1.EventTypeWarning
	if c.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	r.recordEvent(ctx, group, kind, c.Reason, c.Message)
}

// recordEvent records an event on a PodGroup.
func (r *reporter) recordEvent(ctx context.Context, group *schedulingv1alpha1.PodGroup, kind, reason, message string) {
	r.recorder.WithLogger(klog.FromContext(ctx)).Eventf(withKind(group), nil, kind, reason, "Scheduling", "%s", message)
}

// mark is what the condition PodScheduled=False says of a Pod that waits.
type mark struct {
	reason, message string
	// event says that an event says the same.
	event bool
}

// markMember sets PodScheduled=False on a member that waits, or on a Pod that waits in
// vain, unless it has it.
func (r *reporter) markMember(ctx context.Context, key memberKey) error {
	pod, mark := r.tracker.markOf(key)
	if pod == nil || isMarked(pod, mark.reason) {
		return nil
	}
	err := kube.WriteCondition(ctx, r.pods, pod, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: mark.reason, Message: mark.message,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or has changed, and is looked at again then
	}
	if err != nil {
		return fmt.Errorf("marking %s as unschedulable: %w", klog.KObj(pod), err)
	}
	if mark.event {
		r.recorder.WithLogger(klog.FromContext(ctx)).
			Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", mark.message)
	}
	return nil
}

func isMarked(pod *corev1.Pod, reason string) bool {
	c := kube.ConditionOf(pod, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == reason
}

// news are the conditions to write now, with the group that they are for; nil
// for nothing. wait is when to ask again, 0 for not before something changes.
func (t *tracker) news(key types.NamespacedName) (*schedulingv1alpha1.PodGroup, []schedulingv1alpha1.PodGroupCondition, time.Duration) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !t.synced {
		return nil, nil, 0
	}
	v, ok := t.verdict(g)
	if !ok {
		return nil, nil, 0
	}
	if v.reason == schedulingv1alpha1.ReasonNotEnoughTasks {
		// Whoever makes a group makes its members next: that is no news.
		if left := membersGrace - t.now().Sub(g.group.CreationTimestamp.Time); left > 0 {
			return nil, nil, left
		}
	}
	switch v.compare(g.conditions()) {
	case changeNone:
		return nil, nil, 0
	case changeMessage:
		if left := messageInterval - t.now().Sub(g.status.at); left > 0 {
			return nil, nil, left
		}
	}
	conditions := v.conditions(g.conditions(), string(uuid.NewUUID()), metav1.NewTime(t.now()), g.group.Generation)
	return g.group, conditions, 0
}

// wrote remembers what was written.
func (t *tracker) wrote(key types.NamespacedName, uid types.UID, conditions []schedulingv1alpha1.PodGroupCondition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil && g.group != nil && g.group.UID == uid {
		g.status.written, g.status.at = conditions, t.now()
	}
}

// unmarked are the members that wait for room and have no mark of it.
func (t *tracker) unmarked(key types.NamespacedName) []types.UID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !t.lacksRoom(g) || !g.complete() {
		return nil
	}
	var unmarked []types.UID
	for uid, m := range g.members {
		if state(m, t.ours) == memberWaiting && !isMarked(m.pod, corev1.PodReasonUnschedulable) {
			unmarked = append(unmarked, uid)
		}
	}
	return unmarked
}

// lacksRoom says whether the gang found no room in its last turn. The caller holds the lock.
func (t *tracker) lacksRoom(g *gang) bool {
	told, refused := t.line.Told(g.key)
	return refused && !told.Unready
}

// markOf is a Pod that still waits for room, or in vain, and what it is to be told;
// nil if it does not wait any more.
func (t *tracker) markOf(key memberKey) (*corev1.Pod, mark) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key.gang]
	if g == nil || g.members[key.uid] == nil {
		return nil, mark{}
	}
	m := g.members[key.uid]
	switch {
	case t.waitsInVain(m):
		return m.pod, mark{reason: reasonNotAMember, message: strangerMessage(g.group), event: true}
	case t.waitsForGroup(g, m):
		return m.pod, t.grouplessMark(key.gang)
	case t.isToldOld(g, m):
		return m.pod, mark{reason: reasonIncomplete, message: fmt.Sprintf("PodGroup %s lacks members; its conditions say how many", key.gang.Name)}
	case t.lacksRoom(g) && state(m, t.ours) == memberWaiting:
		return m.pod, mark{reason: corev1.PodReasonUnschedulable,
			message: fmt.Sprintf("there is no room for all of PodGroup %s; its conditions say what is missing", key.gang.Name)}
	}
	return nil, mark{}
}
