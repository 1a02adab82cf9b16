// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func ofPriority(priority int32) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Priority(priority) }
}

func ofClass(name string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = name }
}

// bornAt has a PodGroup created a number of seconds into the year.
func bornAt(seconds int, group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	group.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC))
	return group
}
