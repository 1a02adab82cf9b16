// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// handed are the Pods to which this scheduler may be giving a node: those that it has handed to
// kube-scheduler as ordinary ones, and members that it has placed. If such a Pod is bound, that is
// no other scheduler's work, whatever gang the Pod names by then. A Pod leaves as soon as it is seen
// on a node or is gone, so there are never more than Pods that wait. The zero value has none. It is
// safe for concurrent use.
type handed struct {
	mu   sync.Mutex
	pods map[types.UID]bool
}

// note notes a Pod.
func (h *handed) note(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods == nil {
		h.pods = make(map[types.UID]bool)
	}
	h.pods[pod.UID] = true
}

// has says whether a Pod is one of them.
func (h *handed) has(pod *corev1.Pod) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pods[pod.UID]
}

// forget forgets a Pod that has its node, or is gone.
func (h *handed) forget(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pods, pod.UID)
}
