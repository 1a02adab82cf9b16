// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler"
)

// TestEachPodIsLivingOrEnded: of kube-scheduler's selector and ours, just one selects a Pod,
// whatever its phase is.
func TestEachPodIsLivingOrEnded(t *testing.T) {
	client := fake.NewClientset()
	factory := scheduler.NewInformerFactory(client, 0, nil)
	factory.Core().V1().Pods().Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	var living fields.Selector
	for _, action := range client.Actions() {
		if list, ok := action.(clienttesting.ListAction); ok {
			living = list.GetListRestrictions().Fields
		}
	}
	ended, err := fields.ParseSelector(EndedPods)
	if err != nil {
		t.Fatal(err)
	}
	for phase, isOver := range map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false, corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		set := fields.Set{"status.phase": string(phase)}
		if living.Matches(set) == isOver {
			t.Errorf("kube-scheduler sees Pods that are %s: %t", phase, !isOver)
		}
		if ended.Matches(set) != isOver {
			t.Errorf("those that have ended are Pods that are %s: %t", phase, !isOver)
		}
	}
}
