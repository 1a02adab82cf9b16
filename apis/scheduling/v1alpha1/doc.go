// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the PodGroup API, group scheduling.lockstep.dev, version
// v1alpha1.
//
// A PodGroup is a set of Pods that are placed together or not at all. A Pod
// belongs to the group that its label scheduling.lockstep.dev/pod-group names
// in its own namespace. The scheduler writes the group's conditions, the
// controller its phase and counters; each owns its own fields by server-side
// apply.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.lockstep.dev
// +kubebuilder:object:generate=true
package v1alpha1
