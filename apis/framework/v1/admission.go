// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

const (
	// LabelQueue is the label of a Framework that is in a queue of Kueue: the name of a
	// LocalQueue of its namespace.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// AnnotationAdmission is the annotation of a Framework that Kueue has admitted: an Admission,
	// in JSON. Lockstep writes and removes it.
	AnnotationAdmission = "lockstep.dev/kueue-admission"
)

// Admission is what Kueue has admitted.
//
// +k8s:deepcopy-gen=false
type Admission struct {
	// Workload is the UID of Kueue's object.
	Workload string `json:"workload"`
	// Roles says where the Pods of a role may run. A role that is not there is not admitted: its
	// Pods run anywhere.
	Roles map[string]RoleAdmission `json:"roles,omitempty"`
}

// RoleAdmission says where the Pods of a role may run.
//
// +k8s:deepcopy-gen=false
type RoleAdmission struct {
	// NodeSelector is added to that of the Pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are added to those of the Pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
