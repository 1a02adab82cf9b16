// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// TFJob is a job of TensorFlow: parameter servers and workers, or one local replica.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=tfjobs,singular=tfjob
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.tfReplicaSpecs.all(t, [self.spec.tfReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.tfReplicaSpecs && oldSelf.value().spec.tfReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 && !has(self.spec.createdAs) ? n - 1 : n).size() + 2 + (has(self.spec.createdAs) ? 9 : 0) <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type TFJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes it.
	// +required
	Spec kubeflowv1.TFJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller
	// writes it.
	// +optional
	// +structType=atomic
	Status kubeflowv1.JobStatus `json:"status,omitzero"`
}

// TFJobList is a list of TFJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TFJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []TFJob `json:"items"`
}
