// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BellName begins the names of the Pods by which the bell rings; a number ends them.
const BellName = "lockstep-bell"

// Bell is how gangs take turns with ordinary Pods: Pods in kube-scheduler's queue that exist
// nowhere else, one for each priority at most. When the queue hands one out, gangs of its
// priority have their turn. It is safe for concurrent use.
type Bell struct {
	queue internalqueue.SchedulingQueue

	mu sync.Mutex
	// hung are the Pods that are in the queue, and since when, and rung how many there were.
	hung map[int32]hung
	rung int
}

type hung struct {
	pod   *corev1.Pod
	since time.Time
}

// Ring has the queue hand out a Pod of a priority, unless one is in it. That one keeps its
// place in the queue.
func (b *Bell) Ring(ctx context.Context, priority int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, hangs := b.hung[priority]; hangs {
		return
	}
	b.rung++
	name := fmt.Sprintf("%s-%d", BellName, b.rung)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	if b.hung == nil {
		b.hung = make(map[int32]hung)
	}
	b.hung[priority] = hung{pod: pod, since: time.Now()}
	b.hang(klog.FromContext(ctx), pod)
}

// hang puts a Pod into the queue past the plugins of its profile, as it has none. By Add, the
// queue would log each time that it can't sign such a Pod.
func (b *Bell) hang(logger klog.Logger, pod *corev1.Pod) {
	info, err := framework.NewPodInfo(pod)
	if err == nil {
		err = b.queue.AddUnschedulablePodIfNotPresent(logger, &framework.QueuedPodInfo{PodInfo: info}, b.queue.SchedulingCycle())
	}
	if err != nil { // There is nothing in the Pod to be wrong, and no other of its name.
		logger.Error(err, "Ringing for a gang failed")
		return
	}
	b.queue.Activate(logger, map[string]*corev1.Pod{pod.Name: pod})
}

// Heard says whether a Pod that the queue has handed out is one of the bell's, with which
// priority it rang, and when it was hung.
func (b *Bell) Heard(pod *corev1.Pod) (priority int32, since time.Time, ok bool) {
	if !isBell(pod) {
		return 0, time.Time{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	priority = *pod.Spec.Priority
	since = b.hung[priority].since
	delete(b.hung, priority)
	b.queue.Done(pod.UID)
	return priority, since, true
}

// isBell says whether a Pod is one by which the bell rings: no Pod of the API server is
// without a namespace.
func isBell(pod *corev1.Pod) bool {
	return pod.Namespace == "" && pod.Spec.Priority != nil
}
