// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the configuration of Lockstep's programs, group
// config.lockstep.dev, version v1alpha1: that of the controller and the
// arguments of the scheduler's plugin. Both are files, not objects of the API
// server.
//
// +k8s:deepcopy-gen=package
// +groupName=config.lockstep.dev
// +kubebuilder:object:generate=true
package v1alpha1
