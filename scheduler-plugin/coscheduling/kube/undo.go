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

// UndoReserve gives up what the Reserve plugins have set aside for a Pod of which nothing was
// written yet. What they remember is as before; nothing is asked of the API server.
//
// kube-scheduler's own Unreserve is for a binding that failed. DynamicResources takes the
// reservation of a claim back then, also one that is none of this attempt: after a crash, the
// Pod has it from before, and is to keep it. It does so with the context that it is
// given.
func UndoReserve(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *corev1.Pod, node string) {
	profile.RunReservePluginsUnreserve(inMemory(ctx), state, pod, node)
}

// inMemory is a context that has ended, in which no client sends a request. That it did not is
// not worth a line of the log.
func inMemory(ctx context.Context) context.Context {
	ended, end := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	end()
	return ended
}
