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

// WakeUpName begins the names of wake-up entries; a number ends them.
const WakeUpName = "lockstep-wake-up"

// WakeUps are the wake-up entries: placeholder Pods in kube-scheduler's queue that exist nowhere else, one for each
// priority with a due gang. When the queue pops an entry, the gangs of that priority have their scheduling cycles. So
// gangs and ordinary Pods are tried in the order of the queue, and members never wait in the queue (ADR 25). Safe for
// concurrent use.
type WakeUps struct {
	// queue is the real queue.
	queue internalqueue.SchedulingQueue

	mu sync.Mutex
	// entries are the entries in the queue, by priority.
	entries map[int32]entry
	// made is how many entries were created so far.
	made int
}

// entry is a wake-up entry, and since when it is in the queue.
type entry struct {
	pod   *corev1.Pod
	since time.Time
}

// Put adds an entry for a priority to the queue, unless there is one. When kube-scheduler's queue pops the entry, the
// plugin's engine calls Take.
func (w *WakeUps) Put(ctx context.Context, priority int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, is := w.entries[priority]; is {
		return
	}
	w.made++
	name := fmt.Sprintf("%s-%d", WakeUpName, w.made)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	if w.entries == nil {
		w.entries = make(map[int32]entry)
	}
	w.entries[priority] = entry{pod: pod, since: time.Now()}
	w.put(klog.FromContext(ctx), pod)
}

// put adds a Pod to the active part of the queue. First the Pod is added as one that returns to the queue, so that
// PreEnqueue plugins are not asked about it. Then Activate moves the Pod to the active part without an event.
func (w *WakeUps) put(logger klog.Logger, pod *corev1.Pod) {
	info, err := framework.NewPodInfo(pod)
	if err == nil {
		err = w.queue.AddUnschedulablePodIfNotPresent(logger, &framework.QueuedPodInfo{PodInfo: info}, w.queue.SchedulingCycle())
	}
	if err != nil { // nothing in the Pod can be invalid, and its name is unique
		logger.Error(err, "Putting a wake-up entry into the queue failed")
		return
	}
	w.queue.Activate(logger, map[string]*corev1.Pod{pod.Name: pod})
}

// Take takes a wake-up entry that the queue has popped. It returns the entry's priority and when the entry was put into
// the queue. It returns false for any other Pod.
func (w *WakeUps) Take(pod *corev1.Pod) (priority int32, since time.Time, ok bool) {
	if !isWakeUp(pod) {
		return 0, time.Time{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	priority = *pod.Spec.Priority
	since = w.entries[priority].since
	delete(w.entries, priority)
	w.queue.Done(pod.UID)
	return priority, since, true
}

// isWakeUp reports whether a Pod is a wake-up entry. Unlike Pods of the API server, wake-up entries have no namespace.
func isWakeUp(pod *corev1.Pod) bool {
	return pod.Namespace == "" && pod.Spec.Priority != nil
}
