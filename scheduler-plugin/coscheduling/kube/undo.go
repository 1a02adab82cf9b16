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

// UndoReserve undoes what the Reserve plugins have set aside for a Pod, before anything was written. It changes only
// the plugins' state in memory, and sends no request.
//
// kube-scheduler's own Unreserve is meant for a failed binding. In Unreserve, DynamicResources also removes the Pod's
// reservation from a claim by a request. That would be wrong here: after a crash, the Pod may have a reservation from
// an earlier attempt, which it should keep. So UndoReserve passes a context that has ended, with which no request is
// sent.
func UndoReserve(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *corev1.Pod, node string) {
	profile.RunReservePluginsUnreserve(inMemory(ctx), state, pod, node)
}

// inMemory returns a context that has ended, so that no client sends a request. The context's logger drops the errors
// that follow from that.
func inMemory(ctx context.Context) context.Context {
	ended, end := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	end()
	return ended
}
