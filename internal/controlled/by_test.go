// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controlled

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWhatControlsAnObject(t *testing.T) {
	controller := metav1.OwnerReference{Name: "a", UID: "1", Controller: ptr.To(true)}
	owner := metav1.OwnerReference{Name: "b", UID: "2"}
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"nothing":                   {nil, false},
		"an owner":                  {[]metav1.OwnerReference{{Name: "a", UID: "1"}}, false},
		"the controller":            {[]metav1.OwnerReference{controller}, true},
		"the controller of several": {[]metav1.OwnerReference{owner, controller}, true},
		"another of the same name":  {[]metav1.OwnerReference{{Name: "a", UID: "3", Controller: ptr.To(true)}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.owners}}
			if got := By("1", pod); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
