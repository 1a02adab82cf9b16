// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Command API, group bus.volcano.sh, version v1alpha1, and
// the words that Commands share with the policies of Jobs: actions and events.
//
// A Command asks once for one action on one object, mostly a Job of batch.volcano.sh. A Command has neither spec nor
// status: a Command is deleted after its execution. Names on the wire are those of Volcano, so its clients work
// unchanged.
//
// +k8s:deepcopy-gen=package
// +groupName=bus.volcano.sh
// +kubebuilder:object:generate=true
package v1alpha1
