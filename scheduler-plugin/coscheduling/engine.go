// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// resyncPeriod is how often the engine looks for what is due at least, even if nothing has
// happened.
const resyncPeriod = 30 * time.Second

// engine runs the gang cycles of one scheduler, for all profiles that enable the
// plugin.
type engine struct {
	// ctx ends with the scheduler. NextEntity has no context of its own.
	ctx      context.Context
	sched    *kube.Scheduler
	plugins  map[string]*Coscheduling // by scheduler name
	snapshot kube.Snapshot
	pop      kube.Next
	queue    *kube.Queue
	// begin notes that the scheduler has begun to schedule: it leads, if leaders
	// are elected. Before that, begun is open, and the engine watches but does
	// nothing.
	begin func()
	begun <-chan struct{}

	// passes are those of gangs that were planned last.
	passes place.Passes

	// room is what is kept for gangs that wait, and evictions are of Pods whose end is awaited.
	room      room.Room
	evictions room.Evictions
	// freeings are the gangs that give devices back, and idle those that are to be looked at
	// for that. turn is held while a gang has its turn.
	freeings freeings
	idle     idle
	turn     sync.Mutex

	tracker  *tracker
	reporter *status.Reporter
	metrics  *status.Metrics
}

// Attach lets the plugin take gangs out of a scheduler's hands: it decides
// who is next in its place and starts what the plugin needs beside it. Call it after the
// scheduler is made and before it runs. It fails if no profile enables the
// plugin. All that it starts ends with ctx. Of several schedulers of which one is
// elected, those that don't lead only watch.
func Attach(ctx context.Context, sched *kube.Scheduler) error {
	plugins := pluginsOf(sched.Profiles())
	if len(plugins) == 0 {
		return fmt.Errorf("no profile of the scheduler enables the plugin %s", Name)
	}
	groups, err := groupClient(plugins)
	if err != nil {
		return err
	}
	return attach(ctx, sched, plugins, groups, status.ServedRegistry())
}

// pluginsOf are the plugin's instances, by scheduler name.
func pluginsOf(profiles map[string]framework.Framework) map[string]*Coscheduling {
	plugins := make(map[string]*Coscheduling)
	for name, profile := range profiles {
		for _, plugin := range profile.PreEnqueuePlugins() {
			if c, ok := plugin.(*Coscheduling); ok {
				plugins[name] = c
			}
		}
	}
	return plugins
}

func attach(ctx context.Context, sched *kube.Scheduler, plugins map[string]*Coscheduling,
	groups schedulingclient.Interface, registry status.Registry) error {
	begun := make(chan struct{})
	e := &engine{
		ctx:      ctx,
		begun:    begun,
		sched:    sched,
		plugins:  plugins,
		snapshot: sched.Snapshot(),
	}
	stirred := make(chan struct{}, 1)
	stir := func() {
		select {
		case stirred <- struct{}{}:
		default: // it is to look anyway
		}
	}
	e.tracker = newTracker(e.serves, time.Now, stir, func(gang types.NamespacedName, d time.Duration) { e.reporter.Report(gang, d) })
	e.tracker.classPriority = e.classPriority()
	e.tracker.dissolve = func(group *schedulingv1alpha1.PodGroup, rest []*corev1.Pod) { go e.dissolve(group, rest) }
	e.tracker.idle = e.idle.add
	e.reporter = status.NewReporter(e.tracker, groups, e.clientSet(), e.recorder(), e.isBinding)
	e.protectGangs(klog.FromContext(ctx))
	var err error
	if e.metrics, err = status.NewMetrics(registry, e.tracker.waitingGangs); err != nil {
		return err
	}
	for _, c := range plugins {
		c.engine = e
	}
	e.pop = sched.InterceptNext(e.nextEntity)
	e.queue = sched.KeepOut(e.places, e.tracker.heard, e.forgetGone)
	e.begin = sync.OnceFunc(func() { close(begun) })
	if err := e.startWatching(groups); err != nil {
		return err
	}
	go e.tendBell(stirred)
	go e.reporter.Run(ctx)
	go wait.UntilWithContext(ctx, e.tendIdle, idlePeriod)
	return nil
}

// serves says whether Pods with this scheduler name are placed by the engine.
func (e *engine) serves(schedulerName string) bool {
	_, ok := e.plugins[schedulerName]
	return ok
}

// nextEntity stands in for the scheduling queue's Pop. It hands ordinary Pods to the
// scheduler. When the bell rings, the gang that is next has its turn: its cycle, on the
// scheduling goroutine like any scheduling cycle. nil, at shutdown, goes through.
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
		if priority, since, rung := e.queue.Bell.Heard(podInfo.Pod); rung {
			e.turns(priority, since)
			continue
		}
		if !e.places(podInfo.Pod) {
			return entity, nil
		}
		e.sched.Done(podInfo.Pod) // it became a member when it was in the queue
	}
}

// turns are the turns of the gangs for which the bell rang: those of its priority, or a higher
// one, that were due when it was hung. So no ordinary Pod that came later has its turn
// before them, unless it outranks them.
func (e *engine) turns(priority int32, hung time.Time) {
	for {
		view, ok := e.tracker.begin(priority, hung)
		if !ok {
			break
		}
		e.runCycle(view)
		if e.ctx.Err() != nil || e.queue.Outranked(priority) {
			break
		}
	}
	e.ring()
	e.tracker.stir()
}

// places says whether the engine places a Pod that the queue hands out. A bound
// Pod is there for a resize, which is kube-scheduler's business.
func (e *engine) places(pod *corev1.Pod) bool {
	_, member := podgroup.GroupOf(pod)
	return member && pod.Spec.NodeName == "" && e.serves(pod.Spec.SchedulerName)
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
