// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// XGBoostJob is a job of XGBoost or LightGBM: a master and workers.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=xgboostjobs,singular=xgboostjob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.xgbReplicaSpecs.all(t, [self.spec.xgbReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.xgbReplicaSpecs && oldSelf.value().spec.xgbReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 ? n - 1 : n).size() + 2 <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type XGBoostJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec XGBoostJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
}

// XGBoostJobList is a list of XGBoostJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type XGBoostJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []XGBoostJob `json:"items"`
}

// XGBoostJobSpec is what the user wants of an XGBoostJob.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.xgbReplicaSpecs.all(t, t in ['Master', 'Worker'])",fieldPath=".xgbReplicaSpecs",message="types must be Master or Worker"
// +kubebuilder:validation:XValidation:rule="self.xgbReplicaSpecs.exists(t, t == 'Master')",fieldPath=".xgbReplicaSpecs",message="Master decides when the job succeeds, and has to be there"
// +kubebuilder:validation:XValidation:rule="self.xgbReplicaSpecs.all(t, t != 'Master' || self.xgbReplicaSpecs[t].?replicas.orValue(0) == 1)",fieldPath=".xgbReplicaSpecs",message="Master needs replicas: 1, written out"
// +kubebuilder:validation:XValidation:rule="self.xgbReplicaSpecs.map(t, self.xgbReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".xgbReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
// +kubebuilder:validation:XValidation:rule="self.xgbReplicaSpecs.all(t, !has(self.xgbReplicaSpecs[t].template) || !has(self.xgbReplicaSpecs[t].template.spec) || !has(self.xgbReplicaSpecs[t].template.spec.containers) || self.xgbReplicaSpecs[t].template.spec.containers.exists(c, c.name == 'xgboost'))",fieldPath=".xgbReplicaSpecs",message="every template needs a container named xgboost"
type XGBoostJobSpec struct {
	// runPolicy says how the job is run, ended and cleaned up. Default: see there.
	// Mutable, but for managedBy and a queue.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// xgbReplicaSpecs are the replicas by type: Master, which has to be there, and Worker.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	XGBReplicaSpecs map[string]ReplicaSpec `json:"xgbReplicaSpecs"`
}
