// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// MPIJob is a job of MPI: a launcher, and workers into which the launcher logs by ssh.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=mpijobs,singular=mpijob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.spec.mpiReplicaSpecs.all(t, [self.spec.mpiReplicaSpecs[t].?replicas.orValue(1)].all(n, oldSelf.hasValue() && t in oldSelf.value().spec.mpiReplicaSpecs && oldSelf.value().spec.mpiReplicaSpecs[t].?replicas.orValue(1) == n || self.metadata.name.size() + t.size() + (t == 'Launcher' ? 1 : string(n > 0 ? n - 1 : n).size() + 2) <= 63))",message="metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters",optionalOldSelf=true
type MPIJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec MPIJobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller writes the status.
	// +optional
	// +structType=atomic
	Status kubeflowv1.JobStatus `json:"status,omitzero"`
}

// MPIJobList is a list of MPIJobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type MPIJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []MPIJob `json:"items"`
}

// MPIJobSpec is what the user wants of an MPIJob.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : "") == (has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : "")`,fieldPath=".runPolicy.managedBy",message="is immutable: a job never changes hands"
// +kubebuilder:validation:XValidation:rule=`[oldSelf.?runPolicy.?schedulingPolicy.?queue.orValue("")].all(q, q == "" || q == self.?runPolicy.?schedulingPolicy.?queue.orValue(""))`,fieldPath=".runPolicy.schedulingPolicy.queue",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.all(t, t in ['Launcher', 'Worker'])",fieldPath=".mpiReplicaSpecs",message="types must be Launcher or Worker"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.exists(t, t == 'Launcher')",fieldPath=".mpiReplicaSpecs",message="Launcher decides when the job succeeds, and has to be there"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.all(t, t != 'Launcher' || self.mpiReplicaSpecs[t].?replicas.orValue(1) == 1)",fieldPath=".mpiReplicaSpecs",message="Launcher needs replicas: 1"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.all(t, t != 'Worker' || self.mpiReplicaSpecs[t].?replicas.orValue(1) > 0)",fieldPath=".mpiReplicaSpecs",message="Worker needs at least 1 replica"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.all(t, !(self.mpiReplicaSpecs[t].?restartPolicy.orValue('Never') in ['Always', 'ExitCode']))",fieldPath=".mpiReplicaSpecs",message="restartPolicy must be Never or OnFailure"
// +kubebuilder:validation:XValidation:rule="self.mpiReplicaSpecs.map(t, self.mpiReplicaSpecs[t].?replicas.orValue(1)).sum() <= 10000",fieldPath=".mpiReplicaSpecs",message="must have at most 10000 replicas, which is their sum over all types"
type MPIJobSpec struct {
	// slotsPerWorker is how many processes the list of hosts gives to each worker. Default 1.
	// Mutable: the list follows.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// runLauncherAsWorker puts the launcher on the list of hosts, too. Default false. Mutable:
	// it counts for Pods that are made later, and for the list.
	// +optional
	RunLauncherAsWorker *bool `json:"runLauncherAsWorker,omitempty"`

	// runPolicy says how the job is run, ended and cleaned up. Its backoffLimit counts tries of
	// the launcher only, default 6, and its cleanPodPolicy is about workers only. Mutable, but
	// for managedBy and a queue.
	// +optional
	RunPolicy kubeflowv1.RunPolicy `json:"runPolicy,omitzero"`

	// mpiReplicaSpecs are the replicas by type: Launcher, which has to be there, and Worker. The
	// first container of a template is the one that launches, or works. Default of a
	// restartPolicy: OnFailure of the Launcher, Never of Workers.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	MPIReplicaSpecs map[string]kubeflowv1.ReplicaSpec `json:"mpiReplicaSpecs"`

	// sshAuthMountPath is the folder that holds the keys in each Pod. Default /root/.ssh.
	// Mutable: it counts for Pods that are made later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// launcherCreationPolicy says when the launcher is made: AtStartup, or when all workers are
	// ready, by WaitForWorkersReady. Default AtStartup. Mutable.
	// +optional
	LauncherCreationPolicy LauncherCreationPolicy `json:"launcherCreationPolicy,omitempty"`

	// mpiImplementation is the MPI whose list of hosts and variables the launcher gets: OpenMPI,
	// Intel or MPICH. Default OpenMPI. Mutable: it counts for Pods that are made later, and for
	// the list.
	// +optional
	MPIImplementation MPIImplementation `json:"mpiImplementation,omitempty"`
}

// LauncherCreationPolicy says when the launcher is made.
//
// +enum
// +kubebuilder:validation:Enum="";AtStartup;WaitForWorkersReady
type LauncherCreationPolicy string

// Values of LauncherCreationPolicy.
const (
	LauncherCreationPolicyAtStartup           LauncherCreationPolicy = "AtStartup"
	LauncherCreationPolicyWaitForWorkersReady LauncherCreationPolicy = "WaitForWorkersReady"
)

// MPIImplementation is an MPI.
//
// +enum
// +kubebuilder:validation:Enum="";OpenMPI;Intel;MPICH
type MPIImplementation string

// Values of MPIImplementation.
const (
	MPIImplementationOpenMPI MPIImplementation = "OpenMPI"
	MPIImplementationIntel   MPIImplementation = "Intel"
	MPIImplementationMPICH   MPIImplementation = "MPICH"
)
