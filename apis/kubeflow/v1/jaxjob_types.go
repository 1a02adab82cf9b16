// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// JAXJob is a job of JAX: workers, the first of which coordinates.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=jaxjobs,singular=jaxjob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.jaxReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.jaxReplicaSpecs.all(t, [self.spec.jaxReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.jaxReplicaSpecs && oldSelf.value().spec.jaxReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 ? n - 1 : n).size() + 2 <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type JAXJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec JAXJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
}

// JAXJobList is a list of JAXJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JAXJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []JAXJob `json:"items"`
}

// JAXJobSpec is what the user wants of a JAXJob.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.jaxReplicaSpecs.all(t, t == 'Worker')",fieldPath=".jaxReplicaSpecs",message="types must be Worker"
// +kubebuilder:validation:XValidation:rule="self.jaxReplicaSpecs.all(t, t != 'Worker' || self.jaxReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".jaxReplicaSpecs",message="Worker decides when the job succeeds, and needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.jaxReplicaSpecs.map(t, self.jaxReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".jaxReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
// +kubebuilder:validation:XValidation:rule="self.jaxReplicaSpecs.all(t, !has(self.jaxReplicaSpecs[t].template) || !has(self.jaxReplicaSpecs[t].template.spec) || !has(self.jaxReplicaSpecs[t].template.spec.containers) || self.jaxReplicaSpecs[t].template.spec.containers.exists(c, c.name == 'jax'))",fieldPath=".jaxReplicaSpecs",message="every template needs a container named jax"
type JAXJobSpec struct {
	// runPolicy says how the job is run, ended and cleaned up. Default: see there.
	// Mutable, but for managedBy and a queue.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// jaxReplicaSpecs are the replicas by type, of which there is one: Worker.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=1
	JAXReplicaSpecs map[string]ReplicaSpec `json:"jaxReplicaSpecs"`
}
