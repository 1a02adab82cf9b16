// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// TestALimitCountsWhereAControllerEnforcesIt, and is an estimate elsewhere, of which the user is told.
func TestALimitCountsWhereAControllerEnforcesIt(t *testing.T) {
	ours := metav1.NewControllerRef(&metav1.ObjectMeta{Name: "fw-attempt", UID: "attempt"}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for name, test := range map[string]struct {
		group schedulingv1alpha1.PodGroup
		want  Runtime
		told  []string
	}{
		"a group of a Framework": {
			group: schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*ours}},
				Spec: schedulingv1alpha1.PodGroupSpec{MaxRuntimeSeconds: ptr.To[int32](60), ExpectedRuntimeSeconds: ptr.To[int32](30)}},
			want: Runtime{Limit: time.Minute, Expected: 30 * time.Second},
		},
		"a group of somebody else": {
			group: schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MaxRuntimeSeconds: ptr.To[int32](60)}},
			want:  Runtime{Expected: time.Minute}, told: []string{ReasonRuntimeNotLimited},
		},
		"an annotation that makes no sense": {
			group: schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{schedulingv1alpha1.AnnotationExpectedRuntime: "1h"}}},
			told:  []string{podgroup.ReasonInvalidRuntime},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := FromOwn(&test.group)
			var told []string
			for _, warning := range got.Warnings {
				told = append(told, warning.Reason)
			}
			if got.Spec.Runtime != test.want || !slices.Equal(told, test.told) {
				t.Errorf("it runs %+v, and %v is told, want %+v and %v", got.Spec.Runtime, told, test.want, test.told)
			}
		})
	}
}
