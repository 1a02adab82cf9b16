// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// hasGang adds a PodGroup called gang, one Pod of which waits, and of which the scheduler has said something.
func (u *user) hasGang(said string) {
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "gang"}}
	group.Spec.MinMember = 1
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Message: said}}
	apiserver.Add(u.api, group)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "member", Labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	apiserver.Add(u.api, pod)
}

// TestTheLineSaysWhyEachWaits, as far as that is known, and what is not known.
func TestTheLineSaysWhyEachWaits(t *testing.T) {
	u := someone(t)
	u.hasGang("short of 8 nvidia.com/gpu")
	u.sees(u.types("queue"), 0, "RANK", "AGE   PROBABLE START   LATEST START   REASON", "short of 8 nvidia.com/gpu")
	u.sees(u.types("queue", "-o", "json"), 0, `"reason": "short of 8 nvidia.com/gpu"`)
}

func TestWhyNamesFieldsThatTheAPIServerDrops(t *testing.T) {
	u := someone(t)
	job := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mistyped", UID: "of-mistyped"}}
	template := runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tensorflow","image":"i","resurces":{}}]}}`)}
	job.Spec.TFReplicaSpecs = map[string]kubeflowv1.ReplicaSpec{kubeflowv1.ReplicaWorker: {Replicas: ptr.To[int32](2), Template: template}}
	apiserver.Add(u.api, job)
	u.hasGroup("mistyped", schedulingv1alpha1.ReasonNotEnoughResources,
		metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "mistyped", UID: "of-mistyped", Controller: ptr.To(true)})
	for _, pod := range []string{"mistyped-worker-0", "mistyped-worker-1"} {
		u.hasPodOf(pod, "of-mistyped", map[string]string{schedulingv1alpha1.LabelPodGroup: "mistyped"}, corev1.PodPending)
	}
	u.sees(u.types("why", "tfjob/mistyped"), 0, schedulingv1alpha1.ReasonNotEnoughResources,
		"spec.tfReplicaSpecs.Worker.template.spec.containers[0].resurces: unknown field")
}
