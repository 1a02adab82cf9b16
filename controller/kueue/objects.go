// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// How the API server knows the objects that are read and written here.
var (
	frameworks = frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	workloads  = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	flavors    = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "resourceflavors"}
)

// Conditions of Workloads.
const (
	conditionQuotaReserved = "QuotaReserved"
	conditionAdmitted      = "Admitted"
	conditionPodsReady     = "PodsReady"
	conditionEvicted       = "Evicted"
	conditionRequeued      = "Requeued"
	conditionFinished      = "Finished"
)

// Reasons of conditions of Workloads, which Kueue acts on.
const (
	reasonPreempted       = "Preempted"
	reasonNodeFailures    = "NodeFailures"
	reasonWaitForStart    = "WaitForStart"
	reasonStarted         = "Started"
	reasonWaitForRecovery = "WaitForRecovery"
	reasonRecovered       = "Recovered"
)

// workload has the fields of a Workload that this package reads or writes. In the cache it has no Pod templates.
type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              workloadSpec   `json:"spec"`
	Status            workloadStatus `json:"status,omitzero"`
}

type workloadSpec struct {
	QueueName string   `json:"queueName"`
	PodSets   []podSet `json:"podSets"`
}

type podSet struct {
	Name     string      `json:"name"`
	Count    int32       `json:"count"`
	Template podTemplate `json:"template"`
}

type podTemplate struct {
	Spec corev1.PodSpec `json:"spec"`
}

type workloadStatus struct {
	Admission       *assignments       `json:"admission,omitempty"`
	Conditions      []metav1.Condition `json:"conditions,omitempty"`
	AdmissionChecks []checkState       `json:"admissionChecks,omitempty"`
}

type assignments struct {
	PodSetAssignments []assignment `json:"podSetAssignments,omitempty"`
}

type assignment struct {
	Name    string            `json:"name"`
	Flavors map[string]string `json:"flavors,omitempty"`
}

// checkState is what an AdmissionCheck says of a Workload.
type checkState struct {
	Name                string      `json:"name"`
	State               string      `json:"state"`
	LastTransitionTime  metav1.Time `json:"lastTransitionTime,omitzero"`
	Message             string      `json:"message"`
	RequeueAfterSeconds *int32      `json:"requeueAfterSeconds,omitempty"`
	RetryCount          *int32      `json:"retryCount,omitempty"`
}

// resourceFlavor has the fields of a ResourceFlavor that select the nodes on which its quota may be used.
type resourceFlavor struct {
	Spec flavor `json:"spec"`
}

type flavor struct {
	NodeLabels  map[string]string   `json:"nodeLabels,omitempty"`
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// DeepCopyObject makes a Workload an object that informers can hold.
func (w *workload) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.PodSets = slices.Clone(w.Spec.PodSets)
	copied.Status.Conditions = slices.Clone(w.Status.Conditions)
	copied.Status.AdmissionChecks = slices.Clone(w.Status.AdmissionChecks)
	if w.Status.Admission != nil {
		copied.Status.Admission = &assignments{slices.Clone(w.Status.Admission.PodSetAssignments)}
		for i, a := range copied.Status.Admission.PodSetAssignments {
			copied.Status.Admission.PodSetAssignments[i].Flavors = maps.Clone(a.Flavors)
		}
	}
	return &copied
}

// is reports whether a condition of a Workload is True.
func (w *workload) is(kind string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kind)
}

// decode returns a transform for an informer. The transform decodes the fields of an object that reduce keeps. If an
// object can't be decoded, only its metadata is kept, so that the others can still be listed.
func decode[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](reduce func(fields map[string]any)) cache.TransformFunc {
	return func(object any) (any, error) {
		raw, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil // It was decoded before.
		}
		raw.SetManagedFields(nil)
		reduce(raw.Object)
		decoded := P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, decoded); err != nil {
			return metadataOf(raw)
		}
		return decoded, nil
	}
}

// metadataOf returns an object without all else.
func metadataOf(object any) (any, error) {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	partial := &metav1.PartialObjectMetadata{}
	fields := map[string]any{"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": raw.Object["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, partial); err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", raw.GetKind(), err)
	}
	partial.ManagedFields = nil
	return partial, nil
}

// keepOfWorkload is a transform that drops Pod templates before they are decoded, because a user may have written a
// quantity there that takes hours to decode.
var keepOfWorkload = decode[workload](func(fields map[string]any) {
	spec, _ := fields["spec"].(map[string]any)
	sets, _ := spec["podSets"].([]any)
	for _, set := range sets {
		fields, _ := set.(map[string]any)
		delete(fields, "template")
	}
})

// keepOfFramework is a transform that keeps nothing of the tasks in the status.
var keepOfFramework = decode[frameworkv1.Framework](func(fields map[string]any) {
	unstructured.RemoveNestedField(fields, "status", "attemptStatus", "taskRoleStatuses")
	unstructured.RemoveNestedField(fields, "status", "attemptStatus", "taskRoleStatusesCompressed")
})
