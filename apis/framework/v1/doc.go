// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the Framework API, group frameworkcontroller.microsoft.com,
// version v1.
//
// A Framework describes a distributed job as roles of tasks. The controller runs a Framework as a sequence of
// attempts; for each attempt the controller creates a ConfigMap (the attempt's instance), a PodGroup if the Framework
// is a gang, and one Pod for each task. Field names, states and completion codes are those of Microsoft's
// FrameworkController, so its clients work unchanged; what Lockstep adds is optional and absent from old manifests.
//
// +k8s:deepcopy-gen=package
// +groupName=frameworkcontroller.microsoft.com
// +kubebuilder:object:generate=true
package v1
