// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// Kind and resource names as they appear on the wire.
const (
	MPIJobKind   = "MPIJob"
	MPIJobPlural = "mpijobs"
)

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: kubeflowv1.GroupName, Version: "v2beta1"}

// SchemeBuilder and AddToScheme register the types of this package.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource name with this package's group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &MPIJob{}, &MPIJobList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
