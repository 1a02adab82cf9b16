// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// minRuntime returns how long a Pod has to run before it may be preempted, if other Pods can be preempted instead. This
// is the annotation of the Pod's PriorityClass if it is a number of seconds from 0 to ten years, else the given number
// of seconds.
func (c classes) minRuntime(pod *corev1.Pod, seconds int32) time.Duration {
	if class, err := c.lister.Get(pod.Spec.PriorityClassName); err == nil {
		own, err := strconv.ParseInt(class.Annotations[schedulingv1alpha1.AnnotationMinRuntime], 10, 32)
		if err == nil && own >= 0 && own <= schedulingv1alpha1.MaxRuntimeSeconds {
			seconds = int32(own)
		}
	}
	return time.Duration(seconds) * time.Second
}
