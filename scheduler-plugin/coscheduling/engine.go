// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

const (
	// resyncPeriod is how often the backstop looks for idle gangs, and idleAfter
	// how long after its last cycle a gang that could be planned counts as one.
	resyncPeriod = 30 * time.Second
	idleAfter    = time.Minute
	// giveWayDelay is how soon a leader that gave way to ordinary Pods is back.
	giveWayDelay = 50 * time.Millisecond
)

// engine runs the gang cycles of one scheduler, for all profiles that enable the
// plugin.
type engine struct {
	// ctx ends with the scheduler. NextEntity has no context of its own.
	ctx      context.Context
	sched    *scheduler.Scheduler
	plugins  map[string]*Coscheduling // by scheduler name
	snapshot *internalcache.Snapshot
	pop      func(klog.Logger) (framework.QueuedEntityInfo, error)
	queue    *gangQueue
	// begin notes that the scheduler has begun to schedule: it leads, if leaders
	// are elected. Before that, begun is open, and the engine watches but does
	// nothing.
	begin func()
	begun <-chan struct{}

	// witnesses are used on the scheduling goroutine only.
	witnesses witnesses
	// room is what is kept for gangs that wait, and evictions are of Pods whose end is awaited.
	room      room.Room
	evictions room.Evictions

	tracker  *tracker
	wakeups  workqueue.TypedDelayingInterface[types.NamespacedName]
	reporter *reporter
	metrics  *gangMetrics
}

// Attach lets the plugin take gangs out of a scheduler's hands: it wraps
// sched.NextEntity and starts what the plugin needs beside it. Call it after the
// scheduler is made and before it runs. It fails if no profile enables the
// plugin. All that it starts ends with ctx. Of several schedulers of which one is
// elected, those that don't lead only watch.
func Attach(ctx context.Context, sched *scheduler.Scheduler) error {
	plugins, snapshot, err := attachable(sched)
	if err != nil {
		return err
	}
	if len(plugins) == 0 {
		return fmt.Errorf("no profile of the scheduler enables the plugin %s", Name)
	}
	groups, err := groupClient(plugins)
	if err != nil {
		return err
	}
	return attach(ctx, sched, plugins, snapshot, groups, servedRegistry{})
}

// attachable finds the plugin's instances, by scheduler name, and the snapshot
// that the profiles share.
func attachable(sched *scheduler.Scheduler) (map[string]*Coscheduling, *internalcache.Snapshot, error) {
	plugins := make(map[string]*Coscheduling)
	var snapshot *internalcache.Snapshot
	for name, profile := range sched.Profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			c, ok := plugin.(*Coscheduling)
			if !ok {
				continue
			}
			if snapshot, ok = c.handle.SnapshotSharedLister().(*internalcache.Snapshot); !ok {
				return nil, nil, fmt.Errorf("plugin %s needs the scheduler's own snapshot, got %T", Name, c.handle.SnapshotSharedLister())
			}
			plugins[name] = c
		}
	}
	return plugins, snapshot, nil
}

func attach(ctx context.Context, sched *scheduler.Scheduler, plugins map[string]*Coscheduling,
	snapshot *internalcache.Snapshot, groups schedulingclient.Interface, registry registry) error {
	begun := make(chan struct{})
	e := &engine{
		ctx:       ctx,
		begun:     begun,
		sched:     sched,
		plugins:   plugins,
		snapshot:  snapshot,
		pop:       sched.NextEntity,
		witnesses: make(witnesses),
		wakeups: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: "lockstep_gang_wakeups"}),
	}
	e.reporter = newReporter(groups, e.clientSet(), e.recorder())
	e.tracker = newTracker(e.serves, time.Now, e.wakeups.AddAfter, e.reporter.groups.AddAfter)
	e.tracker.classPriority = e.classPriority()
	e.tracker.dissolve = func(group *schedulingv1alpha1.PodGroup, rest []*corev1.Pod) { go e.dissolve(group, rest) }
	e.reporter.tracker, e.reporter.binding = e.tracker, e.isBinding
	e.protectGangs(klog.FromContext(ctx))
	var err error
	if e.metrics, err = newGangMetrics(registry, e.tracker.waitingGangs); err != nil {
		return err
	}
	for _, c := range plugins {
		c.engine = e
	}
	sched.NextEntity = e.nextEntity
	e.queue = &gangQueue{SchedulingQueue: sched.SchedulingQueue, tracker: e.tracker, keepsOut: e.places,
		seen: e.wakeups.Add, members: make(map[types.UID]*corev1.Pod)}
	sched.SchedulingQueue = e.queue
	e.begin = sync.OnceFunc(func() { close(begun) })
	if err := e.startWatching(groups); err != nil {
		return err
	}
	go e.runWakeups()
	go e.reporter.run(ctx)
	return nil
}

// serves says whether Pods with this scheduler name are placed by the engine.
func (e *engine) serves(schedulerName string) bool {
	_, ok := e.plugins[schedulerName]
	return ok
}

// nextEntity stands in for the scheduling queue's Pop. It hands ordinary Pods to
// the scheduler, and keeps the members of gangs: the leader's turn is its gang's
// cycle, on the scheduling goroutine like any scheduling cycle, and members that
// have their place only leave the queue. nil, at shutdown, goes through.
func (e *engine) nextEntity(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	e.begin()
	for {
		entity, err := e.pop(logger)
		if err != nil {
			return nil, err
		}
		podInfo, ok := entity.(*framework.QueuedPodInfo)
		if !ok || podInfo.Pod == nil {
			return entity, nil
		}
		if !e.places(podInfo.Pod) {
			e.planAbove(podInfo.GetPriority())
			return entity, nil
		}
		e.turn(podInfo)
	}
}

// places says whether the engine places a Pod that the queue hands out. A bound
// Pod is there for a resize, which is kube-scheduler's business.
func (e *engine) places(pod *corev1.Pod) bool {
	_, member := podgroup.GroupOf(pod)
	return member && pod.Spec.NodeName == "" && e.serves(pod.Spec.SchedulerName)
}

// planAbove plans the gangs that have something to hope for and outrank an
// ordinary Pod whose turn it is. The queue knows the priority of their leaders
// only, which may be lower than that of members that are placed.
func (e *engine) planAbove(priority int32) {
	for {
		view, ok := e.tracker.nextAbove(priority)
		if !ok {
			return
		}
		e.runCycle(view)
	}
}

// turn is the turn of one member of a gang. With it the member leaves the queue:
// if its gang was not placed, whatever may help the gang puts its leader in line.
func (e *engine) turn(popped *framework.QueuedPodInfo) {
	defer e.sched.SchedulingQueue.Done(popped.Pod.UID)
	key, _ := podgroup.GroupOf(popped.Pod)
	if e.isOutranked(popped) {
		e.wakeups.AddAfter(key, giveWayDelay)
		return
	}
	view, what := e.tracker.next(popped.Pod)
	if what == turnOver {
		return
	}
	e.runCycle(view)
	if what == turnYield {
		e.wakeups.Add(key) // it is still to have its turn
	}
}

// isOutranked says whether an ordinary Pod is waiting whose priority is between
// that of a leader, by which the queue knows it, and that of its gang, whose
// PriorityClass may be a lower one.
func (e *engine) isOutranked(leader *framework.QueuedPodInfo) bool {
	priority, ok := e.tracker.priorityOfGang(leader.Pod)
	if !ok || priority >= leader.GetPriority() {
		return false
	}
	return slices.ContainsFunc(e.sched.SchedulingQueue.PodsInActiveQ(), func(pod *corev1.Pod) bool {
		return !e.places(pod) && corev1helpers.PodPriority(pod) > priority
	})
}

// runWakeups puts leaders in line when they are due. It is the only place that
// does: that takes the queue's lock, which PreEnqueue already holds when it asks
// for a wake-up. A gang's count is changed before the wake-up is asked for, and
// PreEnqueue looks at the count under the queue's lock, so that no wake-up is lost
// whichever comes first.
func (e *engine) runWakeups() {
	go func() {
		<-e.ctx.Done()
		e.wakeups.ShutDown()
	}()
	for {
		key, shutdown := e.wakeups.Get()
		if shutdown {
			return
		}
		if leader := e.tracker.due(key); leader != nil {
			e.queue.lineUp(e.ctx, leader)
		} else {
			e.prune() // it may not wait any more
		}
		e.wakeups.Done(key)
	}
}

// retriable says whether a failed API call may succeed when it is repeated.
func retriable(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err),
		apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err):
		return false
	}
	return true
}

// rejected makes the message of a status.
func rejected(plugin string, status *fwk.Status) string {
	if plugin == "" {
		return status.Message()
	}
	return fmt.Sprintf("%s (%s)", status.Message(), plugin)
}
