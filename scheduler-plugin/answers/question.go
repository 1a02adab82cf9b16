// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// The bounds of questions.
const (
	// MaxPods bounds how many Pods a gang has that is not there yet.
	MaxPods = 10000
	// MaxChanges bounds AddNodes and Without.
	MaxChanges = 100
)

// Question asks where a gang would go.
type Question struct {
	Namespace string `json:"namespace"`
	// Name is that of the PodGroup.
	Name string `json:"name"`
	// Gang is one that is not there yet. Nil asks for one that is.
	Gang *Gang `json:"gang,omitempty"`
	// AddNodes are nodes to assume beside those that are there, and Without are PodGroups to assume
	// gone, as namespace/name or as the name of one in the same namespace.
	AddNodes []AddNodes `json:"addNodes,omitempty"`
	Without  []string   `json:"without,omitempty"`
}

// AddNodes are a number of empty nodes that are like one that is there.
type AddNodes struct {
	Like  string `json:"like"`
	Count int    `json:"count"`
}

// Gang is a gang that is not there yet.
type Gang struct {
	Spec  schedulingv1alpha1.PodGroupSpec `json:"spec"`
	Roles []Role                          `json:"roles"`
}

// Role is a number of Pods of a gang that are alike.
type Role struct {
	// Name may be empty.
	Name     string                 `json:"name,omitempty"`
	Count    int                    `json:"count"`
	Template corev1.PodTemplateSpec `json:"template"`
}
