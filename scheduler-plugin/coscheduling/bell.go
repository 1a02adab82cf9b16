// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

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
)

// bellName is the name of the Pods by which the bell rings, with a number behind it.
const bellName = "lockstep-bell"

// bell is how gangs take turns with ordinary Pods: a Pod in kube-scheduler's queue that
// exists nowhere else, with the priority of the gang that is next. When the queue hands it
// out, that gang has its turn. Its scheduler name is no profile's, so no plugin keeps it
// back. It is safe for concurrent use.
type bell struct {
	queue internalqueue.SchedulingQueue

	mu sync.Mutex
	// hung is the Pod that is in the queue, nil for none, and rung how many there were.
	hung *corev1.Pod
	rung int
}

// ring has the queue hand out a Pod of a priority, unless one of that priority or a higher
// one is in it.
func (b *bell) ring(ctx context.Context, priority int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung != nil {
		if *b.hung.Spec.Priority >= priority {
			return
		}
		b.queue.Delete(klog.FromContext(ctx), b.hung)
	}
	b.rung++
	name := fmt.Sprintf("%s-%d", bellName, b.rung)
	b.hung = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	b.queue.Add(ctx, b.hung)
}

// heard says whether a Pod that the queue has handed out is one of the bell's, and with
// which priority it rang. One that was replaced meanwhile rings, too.
func (b *bell) heard(pod *corev1.Pod) (priority int32, ok bool) {
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

// tendBell rings whenever a gang is to have its turn, and gives up the room that is held for
// nobody, until the scheduler ends. It is woken when something has changed.
func (e *engine) tendBell(stirred <-chan struct{}) {
	for {
		e.prune()
		select {
		case <-stirred:
		case <-time.After(e.ring()):
		case <-e.ctx.Done():
			return
		}
	}
}

// ring rings if a gang is to have its turn, and returns in what time to look again if nothing
// happens before.
func (e *engine) ring() time.Duration {
	priority, now, again := e.tracker.ring()
	if now {
		e.bell.ring(e.ctx, priority)
	}
	if again.IsZero() {
		return resyncPeriod
	}
	return min(max(0, again.Sub(e.tracker.now())), resyncPeriod)
}
