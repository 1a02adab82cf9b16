// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// dissolvePause is how long it takes until what is left of a gang that preemption has
// broken is deleted again, because some of it could not be.
const dissolvePause = 10 * time.Second

// evict deletes the victims of a gang, off the scheduling goroutine. If one can't
// be, the gang looks for others.
func (c *cycle) evict(ctx context.Context, view gangView, pods []*corev1.Pod, until time.Time) {
	e := c.engine
	e.evictions.Add(pods, e.tracker.now(), until)
	e.tracker.setLeaving(pods, true)
	e.metrics.preemptions.Inc()
	e.metrics.victims.Add(float64(len(pods)))
	schedulermetrics.PreemptionAttempts.Inc()
	schedulermetrics.PreemptionVictims.Observe(float64(len(pods)))
	klog.FromContext(ctx).V(2).Info("Preempting Pods for a pod group", "victims", len(pods))
	by := &preemptor{group: view.group, scheduler: view.schedulerName(), priority: view.rank.Priority, kind: "PodGroup"}
	go func() {
		if e.deletePods(ctx, by, pods) {
			return
		}
		e.tracker.awaken(view.key)
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
	e.evictions.Add(rest, now, now.Add(room.EvictionPatience))
	e.metrics.victims.Add(float64(len(rest)))
	logger := klog.LoggerWithValues(klog.FromContext(e.ctx), "podGroup", klog.KObj(group))
	logger.V(2).Info("Preempting the rest of a pod group that lost members to preemption", "victims", len(rest))
	by := &preemptor{group: group, scheduler: rest[0].Spec.SchedulerName, kind: "Pod, which took other members of the PodGroup"}
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
func (e *engine) deletePods(ctx context.Context, by *preemptor, pods []*corev1.Pod) bool {
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
	return count(failed) == 0
}

// deletePod deletes one Pod, and tries again if the API server had no time.
func (e *engine) deletePod(ctx context.Context, by *preemptor, pod *corev1.Pod) error {
	var last error
	executor := preemption.NewExecutor(onlyPod{anyPlugin(e.plugins).handle, pod.UID}, feature.Features{})
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: 5}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		_, last = executor.PreemptPod(ctx, victimOn(pod.Spec.NodeName), by, pod, Name)
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

// preemptor is who preempts, for messages.
type preemptor struct {
	group     *schedulingv1alpha1.PodGroup
	scheduler string
	priority  int32
	kind      string
}

var _ preemption.ExecutorPreemptor = &preemptor{}

func (p *preemptor) GetName() string              { return p.group.Name }
func (p *preemptor) GetNamespace() string         { return p.group.Namespace }
func (p *preemptor) UID() types.UID               { return p.group.UID }
func (p *preemptor) SchedulerName() string        { return p.scheduler }
func (p *preemptor) Pods() map[string]*corev1.Pod { return nil }
func (p *preemptor) Priority() int32              { return p.priority }
func (p *preemptor) Type() string                 { return p.kind }

// Obj names its kind, because the event recorder's scheme does not know it.
func (p *preemptor) Obj() runtime.Object {
	group := p.group.DeepCopy()
	group.SetGroupVersionKind(schedulingv1alpha1.PodGroupGroupVersionKind)
	return group
}

// victimOn is a candidate of the executor, of which it asks only the node.
type victimOn string

func (v victimOn) Name() string                 { return string(v) }
func (v victimOn) Victims() *extenderv1.Victims { return &extenderv1.Victims{} }
func (v victimOn) NumPodGroupDisruptions() int  { return 0 }

// tellPreemptors has ordinary Pods that preempt tried again if a victim is gone
// before they could delete it, because a gang was preempted or dissolved or by
// chance. kube-scheduler keeps a preemptor out of its queue until it turns to the
// last victim, and takes that one's end for the sign to try again: if it ended
// before, the preemptor would wait beside its room for minutes.
func (e *engine) tellPreemptors(executor *preemption.Executor) {
	preempt := executor.PreemptPod
	executor.PreemptPod = func(ctx context.Context, candidate preemption.Candidate, by preemption.ExecutorPreemptor,
		victim *corev1.Pod, plugin string) (bool, error) {
		inMemory, err := preempt(ctx, candidate, by, victim, plugin)
		if err == nil && !inMemory && e.isGone(victim) {
			go e.retryPreemptor(executor, by)
		}
		return inMemory, err
	}
}

// retryPreemptor offers a preemptor to the queue as soon as that lets it in.
func (e *engine) retryPreemptor(executor *preemption.Executor, by preemption.ExecutorPreemptor) {
	err := wait.PollUntilContextCancel(e.ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return !executor.IsPodRunningPreemption(by.UID()), nil
	})
	if err == nil { // else the scheduler ends
		e.sched.SchedulingQueue.Activate(klog.FromContext(e.ctx), by.Pods())
	}
}

// isGone says whether the scheduler has seen a Pod's end.
func (e *engine) isGone(pod *corev1.Pod) bool {
	live, err := anyPlugin(e.plugins).handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	return err != nil || live.UID != pod.UID
}

// mayBeTaken says whether an ordinary Pod outranks the gangs of a victim.
func (e *engine) mayBeTaken(victim preemption.Victim, by *corev1.Pod) bool {
	for _, info := range victim.Pods() {
		if _, member := podgroup.GroupOf(info.GetPod()); member && e.tracker.isBlind() {
			return false // it may be any gang's, and is to be judged when that is known
		}
		if priority, ok := e.tracker.priorityOfGang(info.GetPod()); ok && priority >= corev1helpers.PodPriority(by) {
			return false
		}
	}
	return true
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
	_, c := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)
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
