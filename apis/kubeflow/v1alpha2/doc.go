// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha2 is TFJob, group kubeflow.org, version v1alpha2: as it was designed.
//
// A TFJob has parameter servers and workers, or one local replica: a Pod and a Service
// each, whose program is told of all others in its arguments. It succeeds or fails once
// all Pods have ended.
//
// Both versions have the schema of package v1, and any job can be read and changed through
// either. Which rules a job lives by is in spec.createdAs: it is set for jobs that are made
// through this version.
//
// +k8s:deepcopy-gen=package
// +groupName=kubeflow.org
// +kubebuilder:object:generate=true
package v1alpha2
