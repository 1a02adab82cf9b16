// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestNoMemberOfAGroupIsPlacedThatIsBeingDeleted, of whatever kind it is: the garbage collector deletes its Pods.
func TestNoMemberOfAGroupIsPlacedThatIsBeingDeleted(t *testing.T) {
	deleted := metav1.Now()
	object := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(2)}}}
		u.SetName("gang")
		u.SetDeletionTimestamp(&deleted)
		return u
	}
	own := &schedulingv1alpha1.PodGroup{}
	own.DeletionTimestamp = &deleted
	for name, group := range map[string]*Group{
		"Lockstep": FromOwn(own), "scheduler-plugins": FromSchedulerPlugins(object()), "Volcano": FromVolcano(nil)(object()), "Kubernetes": FromNative(object()),
	} {
		if group.Spec.Halt.Reason != ReasonDeleted {
			t.Errorf("%s: the group is halted for %+v, want that it is being deleted", name, group.Spec.Halt)
		}
	}
}
