// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v2beta1 is the API of Kubeflow's MPIJob, group kubeflow.org, version v2beta1, as served by the MPI
// operator. Version v1 of the kind, of the training operator, is another API, and is not served.
//
// What an MPIJob has in common with other training jobs is in package v1.
//
// +k8s:deepcopy-gen=package
// +groupName=kubeflow.org
// +kubebuilder:object:generate=true
package v2beta1
