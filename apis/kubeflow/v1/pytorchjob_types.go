// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PyTorchJob is a job of PyTorch: a master and workers, or workers that find each other.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=pytorchjobs,singular=pytorchjob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.pytorchReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.pytorchReplicaSpecs.all(t, [self.spec.pytorchReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.pytorchReplicaSpecs && oldSelf.value().spec.pytorchReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + string(n > 0 ? n - 1 : n).size() + 2 <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type PyTorchJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec PyTorchJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
}

// PyTorchJobList is a list of PyTorchJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PyTorchJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []PyTorchJob `json:"items"`
}

// PyTorchJobSpec is what the user wants of a PyTorchJob.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.pytorchReplicaSpecs.all(t, t in ['Master', 'Worker'])",fieldPath=".pytorchReplicaSpecs",message="types must be Master or Worker"
// +kubebuilder:validation:XValidation:rule="self.pytorchReplicaSpecs.all(t, t != 'Master' || self.pytorchReplicaSpecs[t].?replicas.orValue(0) == 1)",fieldPath=".pytorchReplicaSpecs",message="Master needs replicas: 1, written out"
// +kubebuilder:validation:XValidation:rule="self.pytorchReplicaSpecs.all(t, t != 'Worker' || self.pytorchReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".pytorchReplicaSpecs",message="Worker needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.pytorchReplicaSpecs.map(t, self.pytorchReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".pytorchReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
// +kubebuilder:validation:XValidation:rule="self.pytorchReplicaSpecs.all(t, !has(self.pytorchReplicaSpecs[t].template) || !has(self.pytorchReplicaSpecs[t].template.spec) || !has(self.pytorchReplicaSpecs[t].template.spec.containers) || self.pytorchReplicaSpecs[t].template.spec.containers.exists(c, c.name == 'pytorch'))",fieldPath=".pytorchReplicaSpecs",message="every template needs a container named pytorch"
// +kubebuilder:validation:XValidation:rule="!has(self.elasticPolicy) || self.pytorchReplicaSpecs.exists(t, t == 'Worker')",fieldPath=".elasticPolicy",message="needs the type Worker"
// +kubebuilder:validation:XValidation:rule="!has(self.nprocPerNode) || !has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode)",fieldPath=".nprocPerNode",message="must not be set together with elasticPolicy.nProcPerNode"
type PyTorchJobSpec struct {
	// runPolicy says how the job is run, ended and cleaned up. Default: see there.
	// Mutable, but for managedBy and a queue.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// elasticPolicy says that workers find each other and may come and go. Default: the number is fixed. Mutable: a
	// change counts for Pods that are created later.
	// +optional
	ElasticPolicy *ElasticPolicy `json:"elasticPolicy,omitempty"`

	// pytorchReplicaSpecs are the replicas by type: Master and Worker.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	PyTorchReplicaSpecs map[string]ReplicaSpec `json:"pytorchReplicaSpecs"`

	// nprocPerNode is how many processes torchrun starts in each Pod: auto, gpu, cpu or a number. Default auto, unless
	// elasticPolicy.nProcPerNode is set. Mutable: a change counts for Pods that are created later.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^(auto|gpu|cpu|[1-9][0-9]*)$`
	NprocPerNode *string `json:"nprocPerNode,omitempty"`
}

// ElasticPolicy says how workers find each other, and how many there may be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="must be at most maxReplicas"
type ElasticPolicy struct {
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

	// rdzvBackend is the way to meet: c10d, etcd or etcd-v2. Default c10d.
	// +optional
	RDZVBackend *RDZVBackend `json:"rdzvBackend,omitempty"`

	// rdzvPort is the port of the meeting place. Default: the port pytorchjob-port of Worker.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	RDZVPort *int32 `json:"rdzvPort,omitempty"`

	// rdzvHost is the host of the meeting place. Default: worker 0.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RDZVHost *string `json:"rdzvHost,omitempty"`

	// rdzvId distinguishes jobs with the same meeting place. Default none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RDZVID *string `json:"rdzvId,omitempty"`

	// rdzvConf has more for the backend. Default none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	RDZVConf []RDZVConf `json:"rdzvConf,omitempty"`

	// standalone starts a backend in the Pod itself, for a job of one. Default false.
	// +optional
	Standalone *bool `json:"standalone,omitempty"`

	// nProcPerNode is how many processes torchrun starts in each Pod. Deprecated: nprocPerNode of the spec replaces this
	// field.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	NProcPerNode *int32 `json:"nProcPerNode,omitempty"`

	// maxRestarts is how often torchrun starts the processes again. Default: its own.
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

// Metric is a metric of autoscaling/v2, as written.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:Type=object
type Metric struct {
	runtime.RawExtension `json:",inline"`
}

// RDZVBackend is how workers of PyTorch meet.
//
// +enum
// +kubebuilder:validation:Enum=c10d;etcd;etcd-v2
type RDZVBackend string

// Values of RDZVBackend.
const (
	RDZVBackendC10D   RDZVBackend = "c10d"
	RDZVBackendETCD   RDZVBackend = "etcd"
	RDZVBackendETCDV2 RDZVBackend = "etcd-v2"
)

// RDZVConf is a setting of a backend.
type RDZVConf struct {
	// key is the name.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// value is the value.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}
