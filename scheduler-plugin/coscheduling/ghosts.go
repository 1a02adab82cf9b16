// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// A Pod that is placed takes room in kube-scheduler's cache from that moment, and
// kube-scheduler gives the room back when it hears that the Pod is gone. If its watch was
// broken it may hear of that as of a change, when another Pod has taken the name meanwhile.
// So the queue in front of kube-scheduler's sees to it that the cache forgets the first.

// forgetGone has the cache forget a Pod that is gone, member or not, as kube-scheduler's queue
// hears. If another Pod has taken its name kube-scheduler itself does not.
func (w *watcher) forgetGone(pod *corev1.Pod) {
	w.sched.ForgetGone(klog.FromContext(w.ctx), pod)
}
