// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

// This file and binding.go mirror private code of the scheduler, because a gang's scheduling cycle replaces the
// scheduler's own cycle and must treat a member in the same way. The original is pkg/scheduler/schedule_one.go of
// k8s.io/kubernetes v1.37.1; each comment names the mirrored function. upstream_test.go fails when that file changes;
// then compare the two again and update the checksum there.

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// AssumedPod returns a copy of a Pod with its node set. Mirrors the first half of assume.
func AssumedPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*framework.PodInfo, error) {
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

// HaveFilter reports whether an extender filters.
func (s *Scheduler) HaveFilter() bool {
	return slices.ContainsFunc(s.sched.Extenders, func(e fwk.Extender) bool { return e.IsFilter() })
}

// PassExtenders asks the extenders that have a filter whether a Pod may be on a node. Mirrors
// findNodesThatPassExtenders.
func (s *Scheduler) PassExtenders(ctx context.Context, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	for _, extender := range s.sched.Extenders {
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

// Assume makes a placement known to all later cycles. Mirrors assume, second half.
func (s *Scheduler) Assume(ctx context.Context, p *Placement) error {
	if err := s.sched.Cache.AssumePod(klog.FromContext(ctx), p.Assumed.Pod); err != nil {
		return err
	}
	s.Denominate(p.Assumed.Pod)
	return nil
}

// Forget undoes Assume. It returns an error if the placement is no longer assumed, because its binding was observed or
// the Pod was deleted.
func (s *Scheduler) Forget(ctx context.Context, p *Placement) error {
	return s.sched.Cache.ForgetPod(klog.FromContext(ctx), p.Assumed.Pod)
}

// Permit runs the Permit plugins. If they make the Pod wait, RunBindingCycle waits. Mirrors prepareForBindingCycle.
func Permit(ctx context.Context, p *Placement) *fwk.Status {
	waitTimes, status := p.Profile.RunPermitPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
	if status.IsWait() {
		p.Profile.AddWaitingPod(p.Assumed.Pod, waitTimes)
		return nil
	}
	return status
}
