// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the PodGroup API, group scheduling.lockstep.dev, version
// v1alpha1.
//
// A PodGroup is a set of Pods that are placed together or not at all. A Pod belongs to the group that the label
// scheduling.lockstep.dev/pod-group names in the Pod's own namespace. The scheduler writes the group's conditions,
// the controller phase and counters; each owns these fields by server-side apply.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.lockstep.dev
// +kubebuilder:object:generate=true
package v1alpha1
