// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BellName begins the names of the Pods by which the bell rings; a number ends them.
const BellName = "lockstep-bell"

// Bell is how gangs take turns with ordinary Pods: a Pod in kube-scheduler's queue that
// exists nowhere else, with the priority of the gang that is next. When the queue hands it
// out, that gang has its turn. It is safe for concurrent use.
type Bell struct {
	queue internalqueue.SchedulingQueue
	// profiles are those of the scheduler.
	profiles []framework.Framework

	mu sync.Mutex
	// hung is the Pod that is in the queue, nil for none, and rung how many there were.
	hung *corev1.Pod
	rung int
}

// Ring has the queue hand out a Pod of a priority, unless one of that priority or a higher
// one is in it.
func (b *Bell) Ring(ctx context.Context, priority int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung != nil {
		if *b.hung.Spec.Priority >= priority {
			return
		}
		b.queue.Delete(klog.FromContext(ctx), b.hung)
	}
	b.rung++
	name := fmt.Sprintf("%s-%d", BellName, b.rung)
	b.hung = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	b.hung.Spec.SchedulerName = b.schedulerName(ctx, b.hung)
	b.queue.Add(ctx, b.hung)
}

// schedulerName is the name of a profile of which no plugin keeps a Pod of the bell out of the
// queue. If there is none it is empty: then the queue asks no plugin, but logs each time
// that it knows no such profile.
func (b *Bell) schedulerName(ctx context.Context, pod *corev1.Pod) string {
	for _, profile := range b.profiles {
		if letsIn(ctx, profile, pod) {
			return profile.ProfileName()
		}
	}
	return ""
}

func letsIn(ctx context.Context, profile framework.Framework, pod *corev1.Pod) bool {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if !plugin.PreEnqueue(ctx, pod).IsSuccess() {
			return false
		}
	}
	return true
}

// Heard says whether a Pod that the queue has handed out is one of the bell's, and with
// which priority it rang. One that was replaced meanwhile rings, too.
func (b *Bell) Heard(pod *corev1.Pod) (priority int32, ok bool) {
	if !isBell(pod) {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung != nil && b.hung.UID == pod.UID {
		b.hung = nil
	}
	b.queue.Done(pod.UID)
	return *pod.Spec.Priority, true
}

// isBell says whether a Pod is one by which the bell rings: no Pod of the API server is
// without a namespace.
func isBell(pod *corev1.Pod) bool {
	return pod.Namespace == "" && pod.Spec.Priority != nil
}
