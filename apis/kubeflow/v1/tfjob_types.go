// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TFJob is a job of TensorFlow: workers, parameter servers, a chief, an evaluator.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=tfjobs,singular=tfjob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.tfReplicaSpecs.all(t, [self.spec.tfReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.tfReplicaSpecs && oldSelf.value().spec.tfReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 && !has(self.spec.createdAs) ? n - 1 : n).size() + 2 + (has(self.spec.createdAs) ? 9 : 0) <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type TFJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec TFJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
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

// TFJobSpec is what the user wants of a TFJob.
//
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) == has(oldSelf.createdAs)",fieldPath=".createdAs",message="stays as it was made: a TFJob that was made through kubeflow.org/v1 is changed through v1 only, and clients that don't know the field may patch, but not replace"
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) || self.tfReplicaSpecs.all(t, t.lowerAscii() in ['ps', 'worker', 'chief', 'master', 'evaluator'])",fieldPath=".tfReplicaSpecs",message="types must be PS, Worker, Chief, Master or Evaluator"
// +kubebuilder:validation:XValidation:rule="!has(self.createdAs) || self.tfReplicaSpecs.all(t, t in ['PS', 'Worker', 'Local'])",fieldPath=".tfReplicaSpecs",message="types of v1alpha2 must be PS, Worker or Local"
// +kubebuilder:validation:XValidation:rule="self.tfReplicaSpecs.all(t, self.tfReplicaSpecs.exists_one(o, o.lowerAscii() == t.lowerAscii()))",fieldPath=".tfReplicaSpecs",message="types must differ in more than upper and lower case"
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) || !self.tfReplicaSpecs.exists(t, t.lowerAscii() == 'chief') || !self.tfReplicaSpecs.exists(t, t.lowerAscii() == 'master')",fieldPath=".tfReplicaSpecs",message="at most one of Chief and Master may be there"
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) || self.tfReplicaSpecs.all(t, !(t.lowerAscii() in ['chief', 'master']) || self.tfReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".tfReplicaSpecs",message="Chief or Master decides when the job succeeds, and needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) || self.tfReplicaSpecs.exists(t, t.lowerAscii() in ['chief', 'master']) || self.tfReplicaSpecs.all(t, t.lowerAscii() != 'worker' || self.tfReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".tfReplicaSpecs",message="Worker decides when the job succeeds, and needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.tfReplicaSpecs.exists(t, self.tfReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".tfReplicaSpecs",message="at least 1 replica is needed"
// +kubebuilder:validation:XValidation:rule="self.tfReplicaSpecs.map(t, self.tfReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".tfReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
// +kubebuilder:validation:XValidation:rule="has(self.createdAs) || self.tfReplicaSpecs.all(t, !has(self.tfReplicaSpecs[t].template) || !has(self.tfReplicaSpecs[t].template.spec) || !has(self.tfReplicaSpecs[t].template.spec.containers) || self.tfReplicaSpecs[t].template.spec.containers.exists(c, c.name == 'tensorflow'))",fieldPath=".tfReplicaSpecs",message="every template needs a container named tensorflow"
type TFJobSpec struct {
	// createdAs is the version of the API through which the job was made, and by whose rules it lives: v1alpha2, or v1
	// if there is none. The API server sets the version, which never changes.
	// +optional
	CreatedAs CreatedAs `json:"createdAs,omitempty"`

	// runPolicy says how the job is run, ended and cleaned up. The field has no effect on jobs of v1alpha2. Default: see
	// there. Mutable, but for managedBy and a queue.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// successPolicy says when a job without Chief and Master succeeds: with worker 0, or
	// with AllWorkers. Default: with worker 0. Mutable.
	// +optional
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// tfReplicaSpecs are the replicas by type: PS, Worker, Chief, Master and Evaluator, in
	// any case; of v1alpha2, PS, Worker and Local.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=5
	TFReplicaSpecs map[string]ReplicaSpec `json:"tfReplicaSpecs"`

	// enableDynamicWorker gives every worker only its own address and those of the parameter servers, so that workers
	// may come and go; a failed worker does not fail the job. Default false. Mutable: a change counts for Pods that are
	// created later.
	// +optional
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
}

// CreatedAs is a version of the API through which a job was made.
//
// +enum
// +kubebuilder:validation:Enum=v1alpha2
type CreatedAs string

// SuccessPolicy says when a TFJob without Chief and Master succeeds.
//
// +enum
// +kubebuilder:validation:Enum="";AllWorkers
type SuccessPolicy string

const (
	// SuccessPolicyDefault: worker 0 or all workers have succeeded.
	SuccessPolicyDefault SuccessPolicy = ""
	// SuccessPolicyAllWorkers: all workers have succeeded.
	SuccessPolicyAllWorkers SuccessPolicy = "AllWorkers"
)
