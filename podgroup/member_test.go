// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestIsMember(t *testing.T) {
	controller := func(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}
	}
	owner := func(reference metav1.OwnerReference) metav1.OwnerReference {
		reference.Controller = nil
		return reference
	}
	attempt := controller("v1", "ConfigMap", "fw-attempt", "this")
	before := controller("v1", "ConfigMap", "fw-attempt", "before")
	replicas := controller("apps/v1", "ReplicaSet", "web", "replicas")
	operator := controller("example.com/v1", "Training", "job", "operator")
	job := controller("batch.volcano.sh/v1alpha1", "Job", "train", "job")
	ofBatch := controller("batch/v1", "Job", "train", "job-of-batch")

	ofJob := map[string]string{"batch.kubernetes.io/controller-uid": "job"}

	tests := map[string]struct {
		group, pod []metav1.OwnerReference
		// memberLabels are those of the group, and labels those of a Pod that does not name it.
		memberLabels, labels map[string]string
		want                 bool
	}{
		"a group that a user made, a Pod that a user made":           {want: true},
		"a group that a user made, a Pod of a ReplicaSet":            {pod: []metav1.OwnerReference{replicas}, want: true},
		"a group that a user made, a Pod of an attempt":              {pod: []metav1.OwnerReference{attempt}, want: true},
		"a group of an operator, a Pod of another controller":        {group: []metav1.OwnerReference{operator}, pod: []metav1.OwnerReference{replicas}, want: true},
		"a group of an operator, a Pod without a controller":         {group: []metav1.OwnerReference{operator}, want: true},
		"a group that a ConfigMap owns but does not control":         {group: []metav1.OwnerReference{owner(attempt)}, want: true},
		"a group of an attempt, a Pod of that attempt":               {group: []metav1.OwnerReference{attempt}, pod: []metav1.OwnerReference{attempt}, want: true},
		"a group of an attempt, a Pod with more owners":              {group: []metav1.OwnerReference{attempt}, pod: []metav1.OwnerReference{owner(replicas), attempt}, want: true},
		"a group of an attempt, a Pod of the attempt before":         {group: []metav1.OwnerReference{attempt}, pod: []metav1.OwnerReference{before}},
		"a group of an attempt, a Pod that a user made":              {group: []metav1.OwnerReference{attempt}},
		"a group of an attempt, a Pod of a ReplicaSet":               {group: []metav1.OwnerReference{attempt}, pod: []metav1.OwnerReference{replicas}},
		"a group of an attempt, a Pod that it owns but not controls": {group: []metav1.OwnerReference{attempt}, pod: []metav1.OwnerReference{owner(attempt)}},
		"a group of a Volcano Job, a Pod of that Job":                {group: []metav1.OwnerReference{job}, pod: []metav1.OwnerReference{job}, want: true},
		"a group of a Volcano Job, a Pod of a Job of its name":       {group: []metav1.OwnerReference{job}, pod: []metav1.OwnerReference{ofBatch}},
		"a group of a Volcano Job, a Pod that a user made":           {group: []metav1.OwnerReference{job}},
		"a group of a Kubernetes Job, a Pod that a user made":        {group: []metav1.OwnerReference{ofBatch}, want: true},
		"a group with memberLabels, a Pod that has them":             {group: []metav1.OwnerReference{ofBatch}, memberLabels: ofJob, labels: ofJob, want: true},
		"a group with memberLabels, a Pod that names it":             {group: []metav1.OwnerReference{ofBatch}, memberLabels: ofJob},
		"a group without memberLabels, a Pod of its Job":             {group: []metav1.OwnerReference{ofBatch}, labels: ofJob},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.group}, Spec: schedulingv1alpha1.PodGroupSpec{MemberLabels: tc.memberLabels}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.pod, Labels: tc.labels}}
			if tc.labels == nil {
				pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: "group"}
			}
			if got := IsMember(group, pod); got != tc.want {
				t.Errorf("IsMember: got %v, want %v", got, tc.want)
			}
		})
	}
}
