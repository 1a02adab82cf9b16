// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// binder binds members to the nodes where they were placed.
type binder struct {
	sched   *kube.Scheduler
	plugins map[string]*Coscheduling
	cycles  gangs.Cycles
	// evictions has the victims that have not ended yet.
	evictions *room.Evictions
	metrics   *status.Metrics
}

// bind binds one member, outside of the scheduling goroutine. If that fails, the member returns to the queue, and the
// unbound rest of the gang is planned again after a back-off according to terms. Bound members count towards the
// minimum.
func (b *binder) bind(ctx context.Context, p *kube.Placement, view *gangs.View, terms queue.Terms) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(p.Pod), "node", p.Node)
	ctx = klog.NewContext(ctx, logger)
	plugin := b.plugins[p.Pod.Spec.SchedulerName]
	writer := binding{p: p, slots: plugin.binds, retries: *plugin.args.BindRetries,
		bind: func(ctx context.Context) *fwk.Status { return b.sched.Bind(ctx, p) }}
	attempt := kube.Attempt{Number: view.Failures + 1, First: view.Since, Start: time.Now()}

	status := kube.RunBindingCycle(ctx, p, writer.write)
	if status.IsSuccess() {
		logger.V(2).Info("Bound member of a pod group")
		kube.ObserveBound(p.Profile, attempt)
		return
	}
	if ctx.Err() != nil {
		return // the scheduler ends; its successor sees what is bound
	}
	b.sched.Unbind(ctx, p)
	// If the Pod was being preempted, this completes the preemption without a deletion.
	b.evictions.Remove(p.Pod)
	b.cycles.Unassume(gangs.FailedBinding{Pod: p.Pod, Terms: terms, Refused: kube.IsDenial(status.AsError()),
		Message: fmt.Sprintf("%s could not be bound to %s: %s", p.Pod.Name, p.Node, text.Shorten(status.Message(), maxRefusal))})
	b.metrics.BindFailures.Inc()
	b.sched.FailBinding(ctx, p, attempt, status)
}

// maxRefusal is how many bytes of a webhook's message a condition repeats; a condition may have 32,768.
const maxRefusal = 1024

// isBinding reports whether members of any profile are being bound.
func isBinding(plugins map[string]*Coscheduling) bool {
	for _, plugin := range plugins {
		if plugin.binds.inUse() {
			return true
		}
	}
	return false
}
