// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// PreFilter has the plugin skip Filter, so that it costs ordinary Pods nothing,
// unless room is held for a gang that just now preempts others. Members of gangs
// find held room in their cycle's snapshot instead.
func (c *Coscheduling) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, member := gangKey(pod); member || c.engine == nil || !c.engine.concerns(corev1helpers.PodPriority(pod)) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreFilterExtensions returns nil: PreFilter leaves nothing that a Pod added or
// removed could change.
func (c *Coscheduling) PreFilterExtensions() fwk.PreFilterExtensions {
	return nil
}

// Filter keeps ordinary Pods from room that was made for a gang of their own or
// a higher priority. It looks at resources only: what else members need of a
// node, nobody takes from them in the seconds that this lasts.
func (c *Coscheduling) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	members := c.engine.heldOn(info.Node().Name, corev1helpers.PodPriority(pod))
	if len(members) == 0 {
		return nil
	}
	full := info.Snapshot()
	for _, m := range members {
		full.AddPodInfo(m)
	}
	if short := noderesources.Fits(pod, full, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}); len(short) > 0 {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) had room that is held for a pod group")
	}
	return nil
}
