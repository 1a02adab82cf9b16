// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// bindRetryDelay is how long a failed bind waits before it is tried again; it
// doubles with each further try.
const bindRetryDelay = 100 * time.Millisecond

// binder binds members to the nodes where they were placed.
type binder struct {
	sched   *kube.Scheduler
	plugins map[string]*Coscheduling
	gangs   *gangs.Gangs
	// evictions are the Pods whose end is awaited.
	evictions *room.Evictions
	metrics   *status.Metrics
}

// bind binds one member, off the scheduling goroutine. A member that can't be
// bound is given back to the queue, and what is left of its gang is planned again
// after a back-off by its terms; the members that are bound count towards the minimum then.
func (b *binder) bind(ctx context.Context, p *kube.Placement, view *gangs.View, terms line.Terms) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(p.Pod), "node", p.Node)
	ctx = klog.NewContext(ctx, logger)
	retries := *b.plugins[p.Pod.Spec.SchedulerName].args.BindRetries
	attempt := kube.Attempt{Number: view.Failures + 1, First: view.Since, Start: time.Now()}

	status := kube.RunBindingCycle(ctx, p, func(ctx context.Context) *fwk.Status { return b.bindWithRetries(ctx, p, retries) })
	if status.IsSuccess() {
		logger.V(2).Info("Bound member of a pod group")
		kube.ObserveBound(p.Profile, attempt)
		return
	}
	if ctx.Err() != nil {
		return // the scheduler ends; the next one sees what is bound
	}
	b.sched.Unbind(ctx, p)
	// If it was being preempted, that was all: nobody deletes it.
	b.evictions.Remove(p.Pod)
	b.gangs.Unassume(gangs.FailedBinding{Pod: p.Pod, Terms: terms,
		Message: fmt.Sprintf("%s could not be bound to %s: %s", p.Pod.Name, p.Node, status.Message())})
	b.metrics.BindFailures.Inc()
	b.sched.FailBinding(ctx, p, attempt, status)
}

// isBinding says whether members of any profile are being bound.
func isBinding(plugins map[string]*Coscheduling) bool {
	for _, plugin := range plugins {
		if len(plugin.binds) > 0 {
			return true
		}
	}
	return false
}

// bindWithRetries writes the binding and repeats that on the same node if the
// API server could not be reached or had no time. At most bindParallelism run at
// once for a profile.
func (b *binder) bindWithRetries(ctx context.Context, p *kube.Placement, retries int32) *fwk.Status {
	plugin := b.plugins[p.Pod.Spec.SchedulerName]
	select {
	case plugin.binds <- struct{}{}:
	case <-ctx.Done():
		return fwk.AsStatus(ctx.Err())
	}
	defer func() { <-plugin.binds }()

	var status *fwk.Status
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: int(retries) + 1}
	for {
		status = b.sched.Bind(ctx, p)
		if status.IsSuccess() || backoff.Steps <= 1 || !retriable(status.AsError()) {
			break
		}
		klog.FromContext(ctx).V(2).Info("Binding failed, trying again", "reason", status.Message())
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return fwk.AsStatus(ctx.Err())
		}
	}
	if boundAfterAll(ctx, p, status) {
		return nil
	}
	return status
}

// boundAfterAll says whether a bind that was refused because the Pod has a node
// is one of ours that had come through: its reply was lost, and the repetition
// conflicted with it.
func boundAfterAll(ctx context.Context, p *kube.Placement, status *fwk.Status) bool {
	if status.IsSuccess() || !apierrors.IsConflict(status.AsError()) {
		return false
	}
	live, err := p.Profile.ClientSet().CoreV1().Pods(p.Pod.Namespace).Get(ctx, p.Pod.Name, metav1.GetOptions{})
	return err == nil && live.UID == p.Pod.UID && live.Spec.NodeName == p.Node
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
