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

// engine runs the gang cycles of one scheduler, for all profiles that enable the
// plugin.
type engine struct {
	// ctx ends with the scheduler. NextEntity has no context of its own.
	ctx      context.Context
	sched    *kube.Scheduler
	plugins  map[string]*Coscheduling // by scheduler name
	snapshot kube.Snapshot
	pop      kube.Next
	queue    *kube.PodQueue
	classes  classes
	// begin notes that the scheduler has begun to schedule: it leads, if leaders
	// are elected. Before that it is only watched what happens.
	begin func()

	// passes are those of gangs that were planned last.
	passes place.Passes
	// tried is what was tried for gangs in vain.
	tried place.Tried

	// reservations are what the configuration says of them, and estimates whether it lets others plan with them.
	reservations configv1alpha1.Reservations
	estimates    bool
	// room is what is kept for gangs that wait, and evictions are of Pods whose end is awaited.
	room      room.Room
	evictions room.Evictions
	// windows are the nodes that are to be maintained.
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

// serves says whether Pods with this scheduler name are placed by the engine.
func (e *engine) serves(schedulerName string) bool {
	_, ok := e.plugins[schedulerName]
	return ok
}

// nextEntity stands in for the Pop of kube-scheduler's queue. It hands ordinary Pods to the scheduler. When Pop hands out a
// wake-up entry, nextEntity runs the cycles of the gangs that are due, on the scheduling goroutine like any scheduling cycle.
// It passes on nil, at shutdown.
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
		// It became a member when it was in the queue.
		e.sched.Done(podInfo.Pod)
		e.queue.Settle(e.ctx, podInfo.Pod)
	}
}

// runCycles runs the cycles of the gangs of the entry's priority, or a higher one, that were due when the entry was put into
// the queue. So no ordinary Pod that came later is planned before them, unless it outranks them.
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

// places says whether the engine places a Pod that the queue hands out. A bound
// Pod is there for a resize, which is kube-scheduler's business.
func (e *engine) places(pod *corev1.Pod) bool {
	return e.gangs.KeepsOut(pod) && pod.Spec.NodeName == "" && e.serves(pod.Spec.SchedulerName)
}
