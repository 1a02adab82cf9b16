// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PaddleJob is a job of PaddlePaddle: servers, which are the masters, and workers, or workers alone.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=paddlejobs,singular=paddlejob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.paddleReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.paddleReplicaSpecs.all(t, [self.spec.paddleReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.paddleReplicaSpecs && oldSelf.value().spec.paddleReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 ? n - 1 : n).size() + 2 <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type PaddleJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec PaddleJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
}

// PaddleJobList is a list of PaddleJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PaddleJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []PaddleJob `json:"items"`
}

// PaddleJobSpec is what the user wants of a PaddleJob.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.paddleReplicaSpecs.all(t, t in ['Master', 'Worker'])",fieldPath=".paddleReplicaSpecs",message="types must be Master or Worker"
// +kubebuilder:validation:XValidation:rule="self.paddleReplicaSpecs.all(t, t != 'Master' || self.paddleReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".paddleReplicaSpecs",message="Master decides when the job succeeds, and needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.paddleReplicaSpecs.exists(t, t == 'Master') || self.paddleReplicaSpecs.all(t, t != 'Worker' || self.paddleReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".paddleReplicaSpecs",message="Worker decides when the job succeeds, and needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.paddleReplicaSpecs.map(t, self.paddleReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".paddleReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
// +kubebuilder:validation:XValidation:rule="self.paddleReplicaSpecs.all(t, !has(self.paddleReplicaSpecs[t].template) || !has(self.paddleReplicaSpecs[t].template.spec) || !has(self.paddleReplicaSpecs[t].template.spec.containers) || self.paddleReplicaSpecs[t].template.spec.containers.exists(c, c.name == 'paddle'))",fieldPath=".paddleReplicaSpecs",message="every template needs a container named paddle"
// +kubebuilder:validation:XValidation:rule="!has(self.elasticPolicy) || self.paddleReplicaSpecs.exists(t, t == 'Worker')",fieldPath=".elasticPolicy",message="needs the type Worker"
type PaddleJobSpec struct {
	// runPolicy says how the job is run, ended and cleaned up. Default: see there.
	// Mutable, but for managedBy and a queue.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// elasticPolicy says between which numbers workers are scaled. Default: the workers are not scaled. Mutable.
	// +optional
	ElasticPolicy *PaddleElasticPolicy `json:"elasticPolicy,omitempty"`

	// paddleReplicaSpecs are the replicas by type: Master and Worker.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	PaddleReplicaSpecs map[string]ReplicaSpec `json:"paddleReplicaSpecs"`
}

// PaddleElasticPolicy says how many workers there may be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="must be at most maxReplicas"
type PaddleElasticPolicy struct {
	// minReplicas is the fewest workers. Default maxReplicas, or else the replicas of
	// Worker.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the most workers. Default minReplicas, or else the replicas of
	// Worker.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// maxRestarts is how often Paddle's launcher starts the processes again. Default: its own. Mutable: a change counts
	// for Pods that are created later.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// metrics scale the workers, by a HorizontalPodAutoscaler: metrics of autoscaling/v2. The metrics are stored as
	// written. Default: the workers are not scaled.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Metrics []Metric `json:"metrics,omitempty"`
}
