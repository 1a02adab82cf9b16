// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API of Kubeflow's training jobs, group kubeflow.org, version v1:
// TFJob, PyTorchJob, XGBoostJob, PaddleJob and JAXJob.
//
// A job has replicas of some types, such as workers and parameter servers: a Pod and a Service each, with the
// addresses of the others in the environment. Names on the wire are those of Kubeflow's training operator, so its
// clients work unchanged.
//
// TFJob is also served as v1alpha2, by the schema of this version: see package v1alpha2.
// All fields of both versions are here, because whatever one of them did not know would be
// lost when a job is written through it.
//
// +k8s:deepcopy-gen=package
// +groupName=kubeflow.org
// +kubebuilder:object:generate=true
package v1
