// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Job is a job of any kind in a common form: its metadata, and a spec with the fields of all kinds. Its status is kept
// separately.
type Job struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec Spec

	// names returns the schedulers that the templates name, which are read once. Nil for a job that was not made from
	// an API object.
	names func() []string
}

// schedulers returns the scheduler names of the templates.
func (j *Job) schedulers() []string {
	if j.names != nil {
		return j.names()
	}
	var names []string
	for _, spec := range j.Spec.Replicas {
		if name := jobpods.TemplateScheduler(spec.Template.Raw); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// WithoutSpec returns the job in the form in which a controller remembers jobs that it does not run: with those fields
// of the spec that decide which controller runs the job.
func (j *Job) WithoutSpec() *Job {
	bare := &Job{TypeMeta: j.TypeMeta, ObjectMeta: j.ObjectMeta}
	bare.Spec.RunPolicy.ManagedBy = j.Spec.RunPolicy.ManagedBy
	return bare
}

// Spec is a job's spec in a form that is the same for all kinds. It shares memory with the API object that it was made
// from, and is immutable.
type Spec struct {
	// CreatedAs is the mark of a TFJob that was made through v1alpha2.
	CreatedAs kubeflowv1.CreatedAs
	// RunPolicy is that of all kinds.
	RunPolicy kubeflowv1.RunPolicy
	// Replicas are those of the types, by the written names.
	Replicas map[string]kubeflowv1.ReplicaSpec

	// SuccessPolicy and EnableDynamicWorker are of TFJobs.
	SuccessPolicy       kubeflowv1.SuccessPolicy
	EnableDynamicWorker bool

	// NprocPerNode is of PyTorchJobs.
	NprocPerNode *string
	// ElasticPolicy is of PyTorchJobs. That of PaddleJobs has some of its fields.
	ElasticPolicy *kubeflowv1.ElasticPolicy

	// MPI is what only MPIJobs have. Nil for other kinds.
	MPI *MPI
}

// MPI is what users want of MPI, with all defaults.
type MPI struct {
	SlotsPerWorker         int32
	RunLauncherAsWorker    bool
	SSHAuthMountPath       string
	LauncherCreationPolicy kubeflowv2beta1.LauncherCreationPolicy
	Implementation         kubeflowv2beta1.MPIImplementation
}

// DeepCopyObject makes a Job an object for clients.
func (j *Job) DeepCopyObject() runtime.Object {
	copied := &Job{TypeMeta: j.TypeMeta, Spec: j.Spec, names: j.names}
	j.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return copied
}

// newJob returns a job of a kind. The templates are read for schedulers only once.
func newJob(kind *kind, metadata metav1.ObjectMeta, spec Spec) *Job {
	read := Job{Spec: spec}
	job := &Job{ObjectMeta: metadata, Spec: spec, names: sync.OnceValue(read.schedulers)}
	job.SetGroupVersionKind(kind.gvk)
	return job
}

// FromTFJob converts a TFJob, of either version, to the core's form.
func FromTFJob(metadata metav1.ObjectMeta, spec *kubeflowv1.TFJobSpec) *Job {
	own := Spec{
		CreatedAs:           spec.CreatedAs,
		RunPolicy:           spec.RunPolicy,
		Replicas:            spec.TFReplicaSpecs,
		EnableDynamicWorker: spec.EnableDynamicWorker,
	}
	if policy := spec.SuccessPolicy; policy != nil {
		own.SuccessPolicy = *policy
	}
	return newJob(tfJob, metadata, own)
}

// FromPyTorchJob converts a PyTorchJob to the core's form.
func FromPyTorchJob(metadata metav1.ObjectMeta, spec *kubeflowv1.PyTorchJobSpec) *Job {
	return newJob(pyTorchJob, metadata, Spec{
		RunPolicy:     spec.RunPolicy,
		Replicas:      spec.PyTorchReplicaSpecs,
		NprocPerNode:  spec.NprocPerNode,
		ElasticPolicy: spec.ElasticPolicy,
	})
}

// FromXGBoostJob converts an XGBoostJob to the core's form.
func FromXGBoostJob(metadata metav1.ObjectMeta, spec *kubeflowv1.XGBoostJobSpec) *Job {
	return newJob(xgBoostJob, metadata, Spec{RunPolicy: spec.RunPolicy, Replicas: spec.XGBReplicaSpecs})
}

// FromPaddleJob converts a PaddleJob to the core's form.
func FromPaddleJob(metadata metav1.ObjectMeta, spec *kubeflowv1.PaddleJobSpec) *Job {
	own := Spec{RunPolicy: spec.RunPolicy, Replicas: spec.PaddleReplicaSpecs}
	if elastic := spec.ElasticPolicy; elastic != nil {
		own.ElasticPolicy = &kubeflowv1.ElasticPolicy{
			MinReplicas: elastic.MinReplicas, MaxReplicas: elastic.MaxReplicas, MaxRestarts: elastic.MaxRestarts, Metrics: elastic.Metrics,
		}
	}
	return newJob(paddleJob, metadata, own)
}

// FromJAXJob converts a JAXJob to the core's form.
func FromJAXJob(metadata metav1.ObjectMeta, spec *kubeflowv1.JAXJobSpec) *Job {
	return newJob(jaxJob, metadata, Spec{RunPolicy: spec.RunPolicy, Replicas: spec.JAXReplicaSpecs})
}

// FromMPIJob converts an MPIJob to the core's form.
func FromMPIJob(metadata metav1.ObjectMeta, spec *kubeflowv2beta1.MPIJobSpec) *Job {
	return newJob(mpiJob, metadata, Spec{
		RunPolicy: spec.RunPolicy,
		Replicas:  spec.MPIReplicaSpecs,
		MPI: &MPI{
			SlotsPerWorker:         ptr.Deref(spec.SlotsPerWorker, 1),
			RunLauncherAsWorker:    ptr.Deref(spec.RunLauncherAsWorker, false),
			SSHAuthMountPath:       cmp.Or(spec.SSHAuthMountPath, rootSSHPath),
			LauncherCreationPolicy: cmp.Or(spec.LauncherCreationPolicy, kubeflowv2beta1.LauncherCreationPolicyAtStartup),
			Implementation:         cmp.Or(spec.MPIImplementation, kubeflowv2beta1.MPIImplementationOpenMPI),
		},
	})
}
