// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// engine runs the cycles of gangs, for all profiles of a scheduler that enable the plugin.
type engine struct {
	// ctx ends with the scheduler. nextEntity gets no context.
	ctx      context.Context
	sched    *kube.Scheduler
	plugins  map[string]*Coscheduling // by scheduler name
	snapshot kube.Snapshot
	pop      kube.Next
	queue    *kube.PodQueue
	classes  classes
	// begin records that the scheduler has begun to schedule, and so leads. Before that, the plugin only watches:
	// watcher.start waits for it before it calls Gangs.SetSynced.
	begin func()

	// passes has what the Filter plugins said in recent cycles.
	passes place.Passes
	// tried has attempts to place gangs that failed.
	tried place.Tried

	// reservations is the configuration of reservations. estimates is whether plans may use estimated run times.
	reservations configv1alpha1.Reservations
	estimates    bool
	// room has the reservations. evictions has the victims that have not ended yet.
	room      room.Room
	evictions room.Evictions
	// idle is the account of the nodes that were kept idle. Only the scheduling goroutine uses it.
	idle room.Idle
	// windows has the nodes with a planned maintenance.
	windows maintenance.Windows
	links   *dialect.Links
	gangs   *gangs.Gangs
	cycles  gangs.Cycles
	reader  gangs.Reader
	metrics *status.Metrics

	keeper    *keeper
	evictor   *evictor
	binder    *binder
	waker     *waker
	freer     *freer
	conflicts *conflicts
}

// serves reports whether the engine places Pods with a scheduler name.
func (e *engine) serves(schedulerName string) bool {
	_, ok := e.plugins[schedulerName]
	return ok
}

// nextEntity replaces the Pop of kube-scheduler's queue: attach passes it to kube.Scheduler.InterceptNext, and
// kube-scheduler calls it in a loop. It returns ordinary Pods to the scheduler. When Pop returns a wake-up entry, which
// waker.wakeUp has put into the queue, nextEntity runs the cycles of the gangs that are due, on the scheduling goroutine
// like any scheduling cycle. At shutdown, it returns nil as Pop does.
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
		if priority, since, rung := e.queue.WakeUps.Take(podInfo.Pod); rung {
			e.runCycles(priority, since)
			continue
		}
		if !e.places(podInfo.Pod) {
			return entity, nil
		}
		// The Pod became a member while it was in the queue.
		e.sched.Done(podInfo.Pod)
		e.queue.Settle(e.ctx, podInfo.Pod)
	}
}

// runCycles runs the cycles of the gangs that have at least the given priority and were due at `since`, when the
// wake-up entry was put into the queue. If an ordinary Pod outranks these gangs, runCycles ends early. Other Pods that
// came into the queue after the entry wait.
func (e *engine) runCycles(priority int32, since time.Time) {
	for {
		view, ok := e.cycles.Begin(priority, since)
		if !ok {
			break
		}
		e.runCycle(gangView{Gang: place.Gang{View: view}})
		if e.ctx.Err() != nil || e.queue.Outranked(priority) {
			break
		}
	}
	e.waker.wakeUp(e.ctx)
	e.waker.changes.Stir()
}

// places reports whether the engine, and not kube-scheduler, handles a Pod from the queue. A bound Pod is in the queue
// for a resize, which kube-scheduler handles.
func (e *engine) places(pod *corev1.Pod) bool {
	return e.gangs.KeepsOut(pod) && pod.Spec.NodeName == "" && e.serves(pod.Spec.SchedulerName)
}
