// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
)

// kind describes a kind of jobs. The same code decides on all kinds; they differ only in these values.
type kind struct {
	gvk schema.GroupVersionKind
	// field is that of the replicas in the spec.
	field string
	// operator is the value of the label operator-name.
	operator string
	// container is the training container, and port, with portName, is where it is reached.
	container string
	portName  string
	port      int32
	// restartPolicy is that of replicas that name none.
	restartPolicy kubeflowv1.RestartPolicy
	// launches means that the Pods of the kind are a launcher and workers of MPI. See mpi.go.
	launches bool
	// types are the types of replicas that the kind allows, in the order in which they are checked: the type that
	// decides about the job comes first.
	types []string
	// anyCase says that types may be written in any case.
	anyCase bool
	// leaders are the types that decide, where there is one, when the job succeeds.
	leaders []string
	// required are the types that a job must have. lone are the types that must have exactly one replica, which the
	// spec must say.
	required, lone []string
	// anyWorkerEnds says that an elastic job of workers alone succeeds with any of them.
	anyWorkerEnds bool
	// scales means that the number of workers can also be changed through the subresource scale.
	scales bool
	// designed says that the job lives by the design of v1alpha2.
	designed bool
	// tell gives the containers of a Pod the addresses of the others.
	tell func(*builder, *podMaking)
	// lists returns the long lists that all Pods get, by name. Nil if the kind has none. See lists.go.
	lists func(*builder) map[string]string
	// validate returns the errors in fields that only this kind has. Nil if there are none to check.
	validate func(*Spec, *field.Path) field.ErrorList
}

// Kinds. tfJobDesigned is a TFJob of v1alpha2.
var (
	tfJob = &kind{
		gvk:           kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.TFJobKind),
		field:         "tfReplicaSpecs",
		operator:      "tfjob-controller",
		container:     "tensorflow",
		portName:      "tfjob-port",
		port:          2222,
		restartPolicy: kubeflowv1.RestartNever,
		types: []string{
			kubeflowv1.ReplicaChief, kubeflowv1.ReplicaMaster, kubeflowv1.ReplicaWorker,
			kubeflowv1.ReplicaEvaluator, kubeflowv1.ReplicaPS,
		},
		anyCase:  true,
		leaders:  []string{kubeflowv1.ReplicaChief, kubeflowv1.ReplicaMaster},
		tell:     (*builder).tellOfTensorFlow,
		lists:    (*builder).listsOfTensorFlow,
		validate: validateSuccessPolicy,
	}
	tfJobDesigned = &kind{
		gvk:       tfJob.gvk,
		field:     tfJob.field,
		operator:  tfJob.operator,
		container: tfJob.container,
		portName:  tfJob.portName,
		port:      tfJob.port,
		types:     []string{kubeflowv1.ReplicaPS, kubeflowv1.ReplicaWorker, kubeflowv1.ReplicaLocal},
		designed:  true,
		tell:      (*builder).tellAsDesigned,
		lists:     (*builder).listsAsDesigned,
		validate:  validateSuccessPolicy,
	}
	pyTorchJob = &kind{
		gvk:           kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.PyTorchJobKind),
		field:         "pytorchReplicaSpecs",
		operator:      "pytorchjob-controller",
		container:     "pytorch",
		portName:      "pytorchjob-port",
		port:          23456,
		restartPolicy: kubeflowv1.RestartOnFailure,
		types:         []string{kubeflowv1.ReplicaMaster, kubeflowv1.ReplicaWorker},
		leaders:       []string{kubeflowv1.ReplicaMaster},
		lone:          []string{kubeflowv1.ReplicaMaster},
		anyWorkerEnds: true,
		scales:        true,
		tell:          (*builder).tellOfPyTorch,
		validate:      validateTorch,
	}
	xgBoostJob = &kind{
		gvk:           kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.XGBoostJobKind),
		field:         "xgbReplicaSpecs",
		operator:      "xgboostjob-controller",
		container:     "xgboost",
		portName:      "xgboostjob-port",
		port:          9999,
		restartPolicy: kubeflowv1.RestartNever,
		types:         []string{kubeflowv1.ReplicaMaster, kubeflowv1.ReplicaWorker},
		leaders:       []string{kubeflowv1.ReplicaMaster},
		required:      []string{kubeflowv1.ReplicaMaster},
		lone:          []string{kubeflowv1.ReplicaMaster},
		tell:          (*builder).tellOfXGBoost,
		lists:         (*builder).listsOfXGBoost,
	}
	paddleJob = &kind{
		gvk:           kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.PaddleJobKind),
		field:         "paddleReplicaSpecs",
		operator:      "paddlejob-controller",
		container:     "paddle",
		portName:      "master",
		port:          36543,
		restartPolicy: kubeflowv1.RestartOnFailure,
		types:         []string{kubeflowv1.ReplicaMaster, kubeflowv1.ReplicaWorker},
		leaders:       []string{kubeflowv1.ReplicaMaster},
		scales:        true,
		tell:          (*builder).tellOfPaddle,
		validate:      validateElasticity,
	}
	jaxJob = &kind{
		gvk:           kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.JAXJobKind),
		field:         "jaxReplicaSpecs",
		operator:      "jaxjob-controller",
		container:     "jax",
		portName:      "jaxjob-port",
		port:          6666,
		restartPolicy: kubeflowv1.RestartNever,
		types:         []string{kubeflowv1.ReplicaWorker},
		scales:        true,
		tell:          (*builder).tellOfJAX,
	}
)

// mpiJob is an MPIJob. Its training container has no fixed name, and its Pods are reached by ssh, not by a port.
var mpiJob = &kind{
	gvk:           kubeflowv2beta1.SchemeGroupVersion.WithKind(kubeflowv2beta1.MPIJobKind),
	field:         "mpiReplicaSpecs",
	operator:      "mpi-operator",
	restartPolicy: kubeflowv1.RestartNever,
	launches:      true,
	types:         []string{kubeflowv1.ReplicaLauncher, kubeflowv1.ReplicaWorker},
	leaders:       []string{kubeflowv1.ReplicaLauncher},
	required:      []string{kubeflowv1.ReplicaLauncher},
	lone:          []string{kubeflowv1.ReplicaLauncher},
	tell:          (*builder).tellOfMPI,
	validate:      validateMPI,
}

// allKinds returns the kinds that alone decide which rules a job follows.
func allKinds() []*kind { return []*kind{tfJob, pyTorchJob, xgBoostJob, paddleJob, jaxJob, mpiJob} }

// kindOf returns the kind of a job. Nil for an unknown kind.
func kindOf(job *Job, createdAs kubeflowv1.CreatedAs) *kind {
	if job.Kind == tfJobDesigned.gvk.Kind && createdAs == kubeflowv1.CreatedAsV1alpha2 {
		return tfJobDesigned
	}
	for _, k := range allKinds() {
		if job.Kind == k.gvk.Kind {
			return k
		}
	}
	return nil
}

// typeOf returns the replica type with a name, "" if none.
func (k *kind) typeOf(name string) string {
	i := slices.IndexFunc(k.types, func(t string) bool {
		return t == name || k.anyCase && strings.EqualFold(t, name)
	})
	if i < 0 {
		return ""
	}
	return k.types[i]
}
