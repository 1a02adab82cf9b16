// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// moment orders what is told, and asked, of all gangs. It has nothing to do with a clock.
type moment int

// crew is what is known of the Pods of a gang together.
type crew struct {
	// pods is how many the gang knows. Without any, nothing is known of it.
	pods int
	// missing are those that are missing.
	missing map[types.UID]*history
	// succeeded are those that have, and that the gang takes for there, by their controllers, empty for none.
	succeeded map[types.UID]map[types.UID]*history
	// last is the last arrival, and before the last one that spares other Pods than that does.
	last, before arrival
}

// arrival is the moment at which the watch of living Pods has shown a Pod that was new in its gang and had no place. Who
// had ended by then may have gone before the Pod was created.
type arrival struct {
	at moment
	// spares is the controller whose Pods are in no doubt, empty for none.
	spares types.UID
}

// controllerOf is the UID of a Pod's controller, empty if it has none.
func controllerOf(pod *corev1.Pod) types.UID {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.UID
	}
	return ""
}

// keeperOf is the UID of the controller of a Pod that keeps those that have succeeded, empty if there is none.
func keeperOf(pod *corev1.Pod) types.UID {
	if keeper := podgroup.Keeper(pod); keeper != nil {
		return keeper.UID
	}
	return ""
}

// note notes an arrival.
func (c *crew) note(a arrival) {
	if a.spares != c.last.spares {
		c.before = c.last
	}
	c.last = a
}

// arrived is the moment of the last arrival that does not spare a Pod, 0 if there was none.
func (c *crew) arrived(pod *corev1.Pod) moment {
	if c.last.spares != "" && c.last.spares == controllerOf(pod) {
		return c.before.at
	}
	return c.last.at
}

// count notes that the gang takes a Pod for there, and discount that it does not.
func (c *crew) count(h *history) {
	if !hasSucceeded(h.pod) {
		return
	}
	of := controllerOf(h.pod)
	if c.succeeded[of] == nil {
		c.succeeded[of] = map[types.UID]*history{}
	}
	c.succeeded[of][h.pod.UID] = h
}

func (c *crew) discount(h *history) {
	of := controllerOf(h.pod)
	if delete(c.succeeded[of], h.pod.UID); len(c.succeeded[of]) == 0 {
		delete(c.succeeded, of)
	}
}

func hasSucceeded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded
}

// isWaiting says whether a Pod has no place and has not ended.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && !hasSucceeded(pod) && pod.Status.Phase != corev1.PodFailed
}
