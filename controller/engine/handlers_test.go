// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhichChangesOfAnOwnerBringASync: all but what this controller writes itself.
func TestWhichChangesOfAnOwnerBringASync(t *testing.T) {
	tests := map[string]struct {
		change func(*entry[*corev1.Pod])
		want   bool
	}{
		"its spec": {func(e *entry[*corev1.Pod]) { e.owner.Generation++ }, true},
		"its status, by this controller": {func(e *entry[*corev1.Pod]) {
			e.storedStatus = storedStatus{data: []byte(`{"phase":"Running"}`)}
			e.owner.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Subresource: "status"}}
		}, false},
		"its status, by another controller": {func(e *entry[*corev1.Pod]) {
			e.storedStatus = storedStatus{data: []byte(`{"phase":"Running"}`)}
			e.owner.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "another", Subresource: "status"}}
		}, true},
		"an annotation, by its user": {func(e *entry[*corev1.Pod]) { e.owner.Annotations = map[string]string{"patience": "30"} }, true},
		"a label, by its user":       {func(e *entry[*corev1.Pod]) { e.owner.Labels = map[string]string{"queue": "q"} }, true},
		"another one of its name":    {func(e *entry[*corev1.Pod]) { e.owner.UID = "another" }, true},
		"it is being deleted":        {func(e *entry[*corev1.Pod]) { e.owner.DeletionTimestamp = &metav1.Time{} }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := &entry[*corev1.Pod]{owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "1", Generation: 1}}}
			after := &entry[*corev1.Pod]{owner: before.owner.DeepCopy()}
			tc.change(after)
			if got := ownerChanged(before, after); got != tc.want {
				t.Errorf("it brings a sync: %t, want %t", got, tc.want)
			}
		})
	}
}
