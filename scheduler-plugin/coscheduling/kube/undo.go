// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// UndoReserve undoes what the Reserve plugins have set aside for a Pod, before anything was written. It restores the
// plugins' memory and sends no request.
//
// kube-scheduler's own Unreserve is for a failed binding. There DynamicResources also removes a claim's reservation,
// even one from before this attempt: after a crash the Pod has a reservation that it should keep. DynamicResources does
// so with the context that it is given, which is why UndoReserve passes an ended one.
func UndoReserve(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *corev1.Pod, node string) {
	profile.RunReservePluginsUnreserve(inMemory(ctx), state, pod, node)
}

// inMemory returns a context that has ended, so that no client sends a request, and whose logger drops the resulting
// errors.
func inMemory(ctx context.Context) context.Context {
	ended, end := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	end()
	return ended
}
