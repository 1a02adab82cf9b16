// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// dissolvePause is how long it takes until what is left of a gang that preemption has
// broken is deleted again, because some of it could not be.
const dissolvePause = 10 * time.Second

// evict deletes the victims of a gang, off the scheduling goroutine. If one can't
// be, the gang looks for others.
func (e *engine) evict(ctx context.Context, view *gangView, pods []*corev1.Pod) {
	e.evictions.Add(pods, e.tracker.now())
	e.tracker.setLeaving(pods, true)
	e.metrics.Preemptions.Inc()
	e.metrics.Victims.Add(float64(len(pods)))
	kube.ObservePreemption(len(pods))
	klog.FromContext(ctx).V(2).Info("Preempting Pods for a pod group", "victims", len(pods))
	by := &kube.Preemptor{Object: withKind(view.Group), Scheduler: view.Waiting[0].Spec.SchedulerName, Priority: view.Rank.Priority, Kind: "PodGroup"}
	key := view.Key
	go func() {
		if e.deletePods(ctx, by, pods) {
			return
		}
		e.tracker.awaken(key)
	}()
}

// dissolve deletes what is left of a gang that was preempted in part and can't
// go on: whoever outranks a gang may take it, but then as a whole.
func (e *engine) dissolve(group *schedulingv1alpha1.PodGroup, pods []*corev1.Pod) {
	var rest []*corev1.Pod
	now := e.tracker.now()
	for _, pod := range pods {
		if !e.evictions.IsLeaving(pod, now) {
			rest = append(rest, pod)
		}
	}
	if len(rest) == 0 {
		return
	}
	e.evictions.Add(rest, now)
	e.metrics.Victims.Add(float64(len(rest)))
	logger := klog.LoggerWithValues(klog.FromContext(e.ctx), "podGroup", klog.KObj(group))
	logger.V(2).Info("Preempting the rest of a pod group that lost members to preemption", "victims", len(rest))
	by := &kube.Preemptor{Object: withKind(group), Scheduler: rest[0].Spec.SchedulerName, Kind: "Pod, which took other members of the PodGroup"}
	if e.deletePods(klog.NewContext(e.ctx, logger), by, rest) {
		return
	}
	select {
	case <-time.After(dissolvePause):
		e.tracker.dissolveAgain(group)
	case <-e.ctx.Done():
	}
}

// deletePods marks Pods as disrupted and deletes them. It returns false if one
// is still there.
func (e *engine) deletePods(ctx context.Context, by *kube.Preemptor, pods []*corev1.Pod) bool {
	failed := make([]bool, len(pods))
	anyPlugin(e.plugins).handle.Parallelizer().Until(ctx, len(pods), func(i int) {
		err := e.deletePod(ctx, by, pods[i])
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Preempting a Pod failed", "pod", klog.KObj(pods[i]))
			e.evictions.Remove(pods[i])
			e.tracker.setLeaving(pods[i:i+1], false)
			failed[i] = true
		}
	}, Name)
	return !slices.Contains(failed, true)
}

// deletePod deletes one Pod, and tries again if the API server had no time.
func (e *engine) deletePod(ctx context.Context, by *kube.Preemptor, pod *corev1.Pod) error {
	var last error
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: 5}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = kube.Evict(ctx, anyPlugin(e.plugins).handle, by, pod, Name)
		if last != nil && !retriable(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("deleting %s: %w", klog.KObj(pod), last)
	}
	return err
}

// withKind is a copy of a PodGroup that names its kind: the event recorder's scheme does
// not know it.
func withKind(group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	group = group.DeepCopy()
	group.SetGroupVersionKind(schedulingv1alpha1.PodGroupGroupVersionKind)
	return group
}

// isBlind says whether there may be gangs that the tracker has not seen yet.
func (t *tracker) isBlind() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return !t.synced && !t.noGroups
}

// priorityOfGang is the priority of a member's gang, false if the Pod is none.
func (t *tracker) priorityOfGang(pod *corev1.Pod) (int32, bool) {
	key, ok := podgroup.GroupOf(pod)
	if !ok {
		return 0, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || g.members[pod.UID] == nil || g.members[pod.UID].isStranger() {
		return 0, false
	}
	return t.rank(g).Priority, true
}

// isPreempted says whether a Pod was marked as preempted. The mark comes before
// the deletion, which may be all at once.
func isPreempted(pod *corev1.Pod) bool {
	c := kube.ConditionOf(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
}

// noticeBroken asks for the rest of a gang to be dissolved when preemption has just taken a
// member that was placed, and too few are left. A member that has been going for a while
// was judged when it went. The caller holds the lock.
func (t *tracker) noticeBroken(g *gang, lost *corev1.Pod) {
	if isPreempted(lost) {
		t.dissolveBroken(g)
	}
}

// noticeBrokenBefore is noticeBroken for a scheduler that has just begun to lead: it may be
// that a gang was broken and not dissolved by the one before. A gang that would be short
// of members without the preemption as well was not broken by it. The caller holds the
// lock.
func (t *tracker) noticeBrokenBefore(g *gang) {
	if g.group == nil {
		return
	}
	before := g.placed.Plus(podgroup.Tally{})
	for _, m := range g.members {
		if m.pod.DeletionTimestamp != nil && m.pod.Spec.NodeName != "" && !m.isStranger() && isPreempted(m.pod) {
			before.Add(podgroup.RoleOf(m.pod), 1)
		}
	}
	if podgroup.Holds(&g.group.Spec, before) {
		t.dissolveBroken(g)
	}
}

// dissolveBroken asks for the rest of a gang to be dissolved that has lost a member, if too
// few are left. The caller holds the lock.
func (t *tracker) dissolveBroken(g *gang) {
	switch {
	case g.group == nil, !t.synced, g.group.Spec.DisruptionMode == schedulingv1alpha1.DisruptPod,
		podgroup.Holds(&g.group.Spec, g.placed):
		return
	}
	var rest []*corev1.Pod
	for _, m := range g.members {
		// One that is about to be bound would be left over too.
		if state(m, t.ours) == memberPlaced && m.pod.Status.Phase != corev1.PodSucceeded {
			rest = append(rest, m.pod)
			t.leave(g, m, true)
		}
	}
	if len(rest) > 0 {
		t.changed(g)
		t.dissolve(g.group, rest)
	}
}

// dissolveAgain asks for the rest of a gang to be dissolved of which something is left.
func (t *tracker) dissolveAgain(group *schedulingv1alpha1.PodGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}]
	if g != nil && g.group != nil && g.group.UID == group.UID {
		t.dissolveBroken(g)
	}
}

// setLeaving records that members of gangs are being preempted, or that it came
// to nothing. Other Pods are none of its business.
func (t *tracker) setLeaving(pods []*corev1.Pod, leaving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pod := range pods {
		key, _ := podgroup.GroupOf(pod)
		g := t.gangs[key]
		if g == nil || g.members[pod.UID] == nil {
			continue
		}
		t.leave(g, g.members[pod.UID], leaving)
		t.changed(g)
	}
}

// leave is setLeaving for one member. The caller holds the lock.
func (t *tracker) leave(g *gang, m *member, leaving bool) {
	g.count(m, state(m, t.ours), -1)
	m.leaving = leaving
	t.enter(g, m)
}
