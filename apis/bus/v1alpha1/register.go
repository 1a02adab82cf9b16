// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of Command.
const GroupName = "bus.volcano.sh"

// Kind and resource names as they appear on the wire.
const (
	CommandKind   = "Command"
	CommandPlural = "commands"
)

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// CommandGroupVersionKind identifies Command in events and owner references.
var CommandGroupVersionKind = SchemeGroupVersion.WithKind(CommandKind)

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
	scheme.AddKnownTypes(SchemeGroupVersion, &Command{}, &CommandList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
