// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Volcano Job API, group batch.volcano.sh, version v1alpha1.
//
// A Job describes a distributed job as tasks: templates of Pods with a number of
// replicas each. Policies say what to do when a Pod fails or goes, plugins let the
// Pods find each other. Names on the wire are those of Volcano, so its clients work
// unchanged; docs/volcano-job.md says what is served and what differs.
//
// +k8s:deepcopy-gen=package
// +groupName=batch.volcano.sh
// +kubebuilder:object:generate=true
package v1alpha1
