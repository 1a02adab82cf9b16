// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

// This file mirrors private code of the scheduler, because a gang cycle stands
// in for the scheduler's own cycle and must treat a member as that would:
// pkg/scheduler/schedule_one.go of k8s.io/kubernetes v1.37.1, whose functions
// each comment names. mirror_test.go fails when that file changes; then compare
// it anew and update the checksum there.

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// assumedPod is a copy of a member that is on a node. Mirrors assume, its first
// half.
func assumedPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*framework.PodInfo, error) {
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if utilfeature.DefaultFeatureGate.Enabled(features.DRANodeAllocatableResources) {
		assumed.Status.NodeAllocatableResourceClaimStatuses =
			dynamicresources.ExtractPodNodeAllocatableResourceClaimStatus(klog.FromContext(ctx), state, node)
	}
	info, err := framework.NewPodInfo(assumed)
	if err != nil {
		return nil, fmt.Errorf("reading affinity of %s: %w", klog.KObj(pod), err)
	}
	return info, nil
}

// assumeInCache makes a placement known to all later cycles. Mirrors assume, its
// second half.
func (c *cycle) assumeInCache(ctx context.Context, p *placement) error {
	if err := c.sched.Cache.AssumePod(klog.FromContext(ctx), p.assumed.Pod); err != nil {
		return err
	}
	c.sched.SchedulingQueue.DeleteNominatedPodIfExists(p.assumed.Pod)
	return nil
}

// permit runs the Permit plugins of others. A member that has to wait does so
// when it is bound. Mirrors prepareForBindingCycle.
func (c *cycle) permit(ctx context.Context, p *placement) *fwk.Status {
	waitTimes, status := p.handle.RunPermitPlugins(ctx, p.state, p.assumed.Pod, p.node)
	if status.IsWait() {
		p.handle.AddWaitingPod(p.assumed.Pod, waitTimes)
		return nil
	}
	return status
}

// passExtenders asks the extenders that filter whether a member may be on a
// node. Mirrors findNodesThatPassExtenders.
func (c *cycle) passExtenders(ctx context.Context, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	for _, extender := range c.sched.Extenders {
		if !extender.IsFilter() || !extender.IsInterested(pod) {
			continue
		}
		nodes, failed, unresolvable, err := extender.Filter(pod, []fwk.NodeInfo{info})
		if err != nil {
			if extender.IsIgnorable() {
				klog.FromContext(ctx).Info("Skipping an extender that failed and may be ignored", "extender", extender.Name(), "err", err)
				continue
			}
			return fwk.AsStatus(fmt.Errorf("extender %s: %w", extender.Name(), err))
		}
		if len(nodes) == 0 {
			name := info.Node().Name
			return fwk.NewStatus(fwk.Unschedulable, failed[name]+unresolvable[name]).WithPlugin(extender.Name())
		}
	}
	return nil
}

// bindMember runs what follows a scheduling cycle, up to the binding. Mirrors
// bindingCycle, without the nominatedNodeName that announces a node for which a
// Pod waits long, and without the event of each Pod's binding: those are two
// writes for each member. The gang's own event tells that it was placed.
func (e *engine) bindMember(ctx context.Context, p *placement, retries int32) *fwk.Status {
	if status := p.handle.WaitOnPermit(ctx, p.assumed.Pod); !status.IsSuccess() {
		return status
	}
	preFlight := p.handle.RunPreBindPreFlights(ctx, p.state, p.assumed.Pod, p.node)
	if preFlight.Code() == fwk.Error || preFlight.IsRejected() {
		return preFlight
	}
	if preFlight.IsSuccess() {
		// PreBind may take long. Preemption may cancel it meanwhile.
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer p.handle.RemovePodInPreBind(p.assumed.Pod.UID)
		p.handle.AddPodInPreBind(p.assumed.Pod.UID, cancel)
	}
	if status := p.handle.RunPreBindPlugins(ctx, p.state, p.assumed.Pod, p.node); !status.IsSuccess() {
		return status
	}
	if binding := p.handle.GetPodInPreBind(p.assumed.Pod.UID); binding != nil && !binding.MarkPrebound() {
		return fwk.AsStatus(context.Cause(ctx))
	}
	status := e.bindWithRetries(ctx, p, retries)
	if status.IsSuccess() {
		p.handle.RunPostBindPlugins(ctx, p.state, p.assumed.Pod, p.node)
	}
	return status
}

// bindOnce writes the binding, by an extender or the Bind plugins. Mirrors bind
// and extendersBinding.
func (e *engine) bindOnce(ctx context.Context, p *placement) *fwk.Status {
	for _, extender := range e.sched.Extenders {
		if !extender.IsBinder() || !extender.IsInterested(p.pod) {
			continue
		}
		err := extender.Bind(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.pod.Namespace, Name: p.pod.Name, UID: p.pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: p.node},
		})
		if err != nil && extender.IsIgnorable() {
			continue
		}
		return fwk.AsStatus(err)
	}
	return p.handle.RunBindPlugins(ctx, p.state, p.assumed.Pod, p.node)
}

// unbind gives up a placement that is assumed in the cache and could not be
// bound, and lets others have the room. Mirrors handleBindingCycleError and
// unreserveAndForget.
func (e *engine) unbind(ctx context.Context, p *placement) {
	logger := klog.FromContext(ctx)
	p.handle.RunReservePluginsUnreserve(ctx, p.state, p.assumed.Pod, p.node)
	if err := e.sched.Cache.ForgetPod(logger, p.assumed.Pod); err != nil {
		// It is not assumed any more: its binding was seen after all, or it is gone.
		logger.V(2).Info("Member was not assumed", "pod", klog.KObj(p.pod), "reason", err.Error())
	}
	e.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, p.assumed.Pod, nil, nil)
}

// observeFailed keeps kube-scheduler's own metrics right for a gang that found no
// place: one attempt, that of its leader, because the others are gated. Mirrors
// the beginning of handleSchedulingFailure.
func observeFailed(profile framework.Framework, failed bool, seconds float64) {
	if failed {
		metrics.PodScheduleError(profile.ProfileName(), seconds)
		return
	}
	metrics.PodUnschedulable(profile.ProfileName(), seconds)
}

// observeBound keeps kube-scheduler's own metrics right. Mirrors the end of
// bindingCycle and getAttemptsLabel.
func observeBound(p *placement, info *framework.QueuedPodInfo, seconds float64) {
	metrics.PodScheduled(p.handle.ProfileName(), seconds)
	metrics.PodSchedulingAttempts.Observe(float64(info.Attempts))
	if info.InitialAttemptTimestamp != nil {
		attempts := "15+"
		if info.Attempts < 15 {
			attempts = strconv.Itoa(info.Attempts)
		}
		metrics.PodSchedulingSLIDuration.WithLabelValues(attempts).Observe(metrics.SinceInSeconds(*info.InitialAttemptTimestamp))
	}
}
