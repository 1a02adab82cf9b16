// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Attempt is an attempt to place a Pod, as kube-scheduler counts attempts.
type Attempt struct {
	// Number is the number of attempts so far, including this one.
	Number int
	// First is when the first attempt began; Start, when this attempt's binding began.
	First, Start time.Time
}

// RunBindingCycle does for a placement what kube-scheduler does after a scheduling cycle. `bind` writes the binding.
// The function mirrors bindingCycle, but leaves out two writes for each member: the nominatedNodeName of a Pod that
// waits long, and the event that the Pod was bound. An event on the gang says that the gang was placed.
func RunBindingCycle(ctx context.Context, p *Placement, bind func(context.Context) *fwk.Status) *fwk.Status {
	if status := p.Profile.WaitOnPermit(ctx, p.Assumed.Pod); !status.IsSuccess() {
		return status
	}
	preFlight := p.Profile.RunPreBindPreFlights(ctx, p.State, p.Assumed.Pod, p.Node)
	if preFlight.Code() == fwk.Error || preFlight.IsRejected() {
		return preFlight
	}
	if preFlight.IsSuccess() {
		// PreBind may take long, and preemption may cancel it.
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer p.Profile.RemovePodInPreBind(p.Assumed.Pod.UID)
		p.Profile.AddPodInPreBind(p.Assumed.Pod.UID, cancel)
	}
	if status := preBind(ctx, p); !status.IsSuccess() {
		return status
	}
	if err := devicesReach(p); err != nil {
		return fwk.AsStatus(err)
	}
	if binding := p.Profile.GetPodInPreBind(p.Assumed.Pod.UID); binding != nil && !binding.MarkPrebound() {
		return fwk.AsStatus(context.Cause(ctx))
	}
	status := bind(ctx)
	if status.IsSuccess() {
		p.Profile.RunPostBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
	}
	return status
}

// Bind writes the binding, without retries, with an extender or the Bind plugins. Mirrors bind and extendersBinding.
func (s *Scheduler) Bind(ctx context.Context, p *Placement) *fwk.Status {
	for _, extender := range s.sched.Extenders {
		if !extender.IsBinder() || !extender.IsInterested(p.Pod) {
			continue
		}
		err := extender.Bind(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: p.Node},
		})
		if err != nil && extender.IsIgnorable() {
			continue
		}
		return fwk.AsStatus(err)
	}
	return p.Profile.RunBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
}

// Unbind undoes an assumed placement that could not be bound, so that other Pods can use the room. Mirrors
// handleBindingCycleError and unreserveAndForget.
func (s *Scheduler) Unbind(ctx context.Context, p *Placement) {
	logger := klog.FromContext(ctx)
	p.Profile.RunReservePluginsUnreserve(ctx, p.State, p.Assumed.Pod, p.Node)
	if err := s.Forget(ctx, p); err != nil {
		// No longer assumed: the binding was observed after all, or the Pod was deleted.
		logger.V(2).Info("Member was not assumed", "pod", klog.KObj(p.Pod), "reason", err.Error())
	}
	s.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, p.Assumed.Pod, nil, nil)
}

// FailBinding reports in the Pod's condition, an event and metrics that a placement could not be bound, as
// kube-scheduler does. Then kube-scheduler's FailureHandler returns the Pod to the queue; see
// PodQueue.AddUnschedulablePodIfNotPresent. Mirrors the end of handleBindingCycleError.
func (s *Scheduler) FailBinding(ctx context.Context, p *Placement, attempt Attempt, status *fwk.Status) {
	info := &framework.QueuedPodInfo{PodInfo: p.Assumed, QueueingParams: framework.QueueingParams{
		Timestamp: attempt.Start, Attempts: attempt.Number, InitialAttemptTimestamp: &attempt.First,
	}}
	s.sched.FailureHandler(ctx, p.Profile, info, status, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}, attempt.Start)
}
