// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

// kind describes one kind of training job: its names and version in the API, and how its spec is decoded.
type kind struct {
	name, plural string
	// operator is the value of the label operator-name on the objects of such jobs.
	operator string
	// version is the version of the API, and client reads and writes it.
	version schema.GroupVersion
	client  func(versioned.Interface) rest.Interface
	// replicas is the field of the spec that has them, by type.
	replicas string
	// configMaps means that jobs may have a ConfigMap; secrets, that they have a Secret.
	configMaps, secrets bool
	// decode reads the spec of a job.
	decode func(metadata metav1.ObjectMeta, spec []byte) (*kubeflow.Job, error)
}

// kinds returns all kinds of jobs. TFJobs of v1alpha2 are stored as TFJobs of v1, with spec.createdAs.
func kinds() []kind {
	all := []kind{
		{
			name: kubeflowv1.TFJobKind, plural: kubeflowv1.TFJobPlural, operator: "tfjob-controller", replicas: "tfReplicaSpecs", configMaps: true,
			decode: decoder(kubeflow.FromTFJob),
		},
		{
			name: kubeflowv1.PyTorchJobKind, plural: kubeflowv1.PyTorchJobPlural, operator: "pytorchjob-controller", replicas: "pytorchReplicaSpecs",
			decode: decoder(kubeflow.FromPyTorchJob),
		},
		{
			name: kubeflowv1.XGBoostJobKind, plural: kubeflowv1.XGBoostJobPlural, operator: "xgboostjob-controller", replicas: "xgbReplicaSpecs", configMaps: true,
			decode: decoder(kubeflow.FromXGBoostJob),
		},
		{
			name: kubeflowv1.PaddleJobKind, plural: kubeflowv1.PaddleJobPlural, operator: "paddlejob-controller", replicas: "paddleReplicaSpecs",
			decode: decoder(kubeflow.FromPaddleJob),
		},
		{
			name: kubeflowv1.JAXJobKind, plural: kubeflowv1.JAXJobPlural, operator: "jaxjob-controller", replicas: "jaxReplicaSpecs",
			decode: decoder(kubeflow.FromJAXJob),
		},
	}
	for i := range all {
		all[i].version = kubeflowv1.SchemeGroupVersion
		all[i].client = func(client versioned.Interface) rest.Interface { return client.KubeflowV1().RESTClient() }
	}
	return append(all, kind{
		name: kubeflowv2beta1.MPIJobKind, plural: kubeflowv2beta1.MPIJobPlural, operator: "mpi-operator", replicas: "mpiReplicaSpecs", configMaps: true, secrets: true,
		version: kubeflowv2beta1.SchemeGroupVersion,
		client:  func(client versioned.Interface) rest.Interface { return client.KubeflowV2beta1().RESTClient() },
		decode:  decoder(kubeflow.FromMPIJob),
	})
}

// decoder returns a function that decodes the spec of a job of one kind and converts it to a Job.
func decoder[S any](from func(metav1.ObjectMeta, *S) *kubeflow.Job) func(metav1.ObjectMeta, []byte) (*kubeflow.Job, error) {
	return func(metadata metav1.ObjectMeta, data []byte) (*kubeflow.Job, error) {
		var spec S
		err := decodeSpec(data, &spec)
		return from(metadata, &spec), err
	}
}

// decodeSpec decodes a spec. If the spec is invalid, or would take far more memory than its text, it stays empty, and
// decodeSpec returns the error.
func decodeSpec[S any](data []byte, spec *S) error {
	if len(data) == 0 {
		return nil
	}
	if err := jobpods.CheckSpec(data); err != nil {
		return err
	}
	if err := utiljson.Unmarshal(data, spec); err != nil {
		*spec = *new(S)
		return fmt.Errorf("spec does not decode: %w", err)
	}
	return nil
}
