// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// A member that is placed takes room in kube-scheduler's cache from that moment, and
// kube-scheduler gives the room back when it hears that the Pod is gone. It has a watch of
// Pods of its own. While that is broken package gangs may hear of a Pod, place it, and hear of
// its end, of all of which kube-scheduler hears nothing. So whoever hears of the end of a
// member sees to it that the cache forgets it.

// updatePod learns of a Pod that names a group and has changed.
func (w *watcher) updatePod(before, after *corev1.Pod) {
	w.gangs.UpdatePod(before, after)
	if before.UID != after.UID {
		w.forgetUnheard(before)
	}
}

// podGone learns that a Pod that names a group is gone.
func (w *watcher) podGone(pod *corev1.Pod) {
	w.gangs.DeletePod(pod)
	w.forgetUnheard(pod)
}

// forgetUnheard has the cache forget a Pod that is gone, unless kube-scheduler knows it:
// then it hears of its end.
func (w *watcher) forgetUnheard(pod *corev1.Pod) {
	pods := w.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	if known, err := pods.Pods(pod.Namespace).Get(pod.Name); err == nil && known.UID == pod.UID {
		return
	}
	w.sched.ForgetGone(klog.FromContext(w.ctx), pod)
}

// forgetGone has the cache forget a member that is gone, as kube-scheduler's queue hears. If
// another Pod has taken its name kube-scheduler itself does not.
func (w *watcher) forgetGone(pod *corev1.Pod) {
	w.sched.ForgetGone(klog.FromContext(w.ctx), pod)
}
