// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds.
const GroupName = "kubeflow.org"

// Kind and resource names as they appear on the wire.
const (
	TFJobKind        = "TFJob"
	TFJobPlural      = "tfjobs"
	PyTorchJobKind   = "PyTorchJob"
	PyTorchJobPlural = "pytorchjobs"
	XGBoostJobKind   = "XGBoostJob"
	XGBoostJobPlural = "xgboostjobs"
	PaddleJobKind    = "PaddleJob"
	PaddleJobPlural  = "paddlejobs"
	JAXJobKind       = "JAXJob"
	JAXJobPlural     = "jaxjobs"
)

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// SchemeBuilder and AddToScheme register the types of this package.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource name with this package's group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// Plurals are the resources of all kinds of jobs of this version.
func Plurals() []string {
	return []string{TFJobPlural, PyTorchJobPlural, XGBoostJobPlural, PaddleJobPlural, JAXJobPlural}
}

// IsJob says whether a kind is one of the jobs of this package.
func IsJob(kind schema.GroupVersionKind) bool {
	if kind.GroupVersion() != SchemeGroupVersion {
		return false
	}
	switch kind.Kind {
	case TFJobKind, PyTorchJobKind, XGBoostJobKind, PaddleJobKind, JAXJobKind:
		return true
	default:
		return false
	}
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &TFJob{}, &TFJobList{}, &PyTorchJob{}, &PyTorchJobList{},
		&XGBoostJob{}, &XGBoostJobList{}, &PaddleJob{}, &PaddleJobList{}, &JAXJob{}, &JAXJobList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
