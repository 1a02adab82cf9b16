// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Labels of Pods and Services of a job. Kubeflow's clients read these: the values never change.
const (
	// KeyOperatorName is the name of the kind's controller: that of the kind in lower case,
	// and -controller.
	KeyOperatorName = "training.kubeflow.org/operator-name"
	KeyJobName      = "training.kubeflow.org/job-name"
	// KeyReplicaType is the type in lower case.
	KeyReplicaType  = "training.kubeflow.org/replica-type"
	KeyReplicaIndex = "training.kubeflow.org/replica-index"
	// KeyJobRole is on the Pods with the logs of the job.
	KeyJobRole = "training.kubeflow.org/job-role"
	// JobRoleMaster is the only value of KeyJobRole, but for Pods of MPIJobs: theirs is the type
	// in lower case.
	JobRoleMaster = "master"
)

// Types of replicas. Those of a TFJob may be written in any case.
const (
	ReplicaPS        = "PS"
	ReplicaWorker    = "Worker"
	ReplicaChief     = "Chief"
	ReplicaMaster    = "Master"
	ReplicaEvaluator = "Evaluator"
	// ReplicaLocal is of TFJobs of v1alpha2.
	ReplicaLocal = "Local"
	// ReplicaLauncher is of MPIJobs.
	ReplicaLauncher = "Launcher"
)

// Values of managedBy: whose a job is.
const (
	ManagedByLockstep         = "lockstep.dev/kubeflow"
	ManagedByTrainingOperator = "kubeflow.org/training-operator"
	ManagedByMultiKueue       = "kueue.x-k8s.io/multikueue"
	// ManagedByMPIOperator is of MPIJobs, in the place of the training operator's.
	ManagedByMPIOperator = "kubeflow.org/mpi-operator"
)

// CreatedAsV1alpha2 is the mark of TFJobs that were made through v1alpha2.
const CreatedAsV1alpha2 = "v1alpha2"

// Bounds of a job.
const (
	// MaxReplicas is the most Pods that a job may have, over all its types.
	MaxReplicas = 10000
	// MaxContainers is the most containers that a template may have, each of both kinds.
	MaxContainers = 100
)
