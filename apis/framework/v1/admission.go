// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

const (
	// LabelQueue is the label of a Framework that is in a queue of Kueue: the name of a LocalQueue of the same
	// namespace.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// AnnotationAdmission is the annotation of a Framework that Kueue has admitted: an Admission, in JSON. Lockstep
	// writes and removes the annotation.
	AnnotationAdmission = "lockstep.dev/kueue-admission"
	// AnnotationRefusal is the annotation of a Framework that can't be in the queue: why, for people. Lockstep writes
	// and removes the annotation.
	AnnotationRefusal = "lockstep.dev/kueue-refusal"
	// LabelGated is the label of a Pod of an admitted Framework while it has scheduling gates of Kueue's
	// integration of Pods. Lockstep removes both.
	LabelGated = "lockstep.dev/kueue-gated"
)

// Admission is what Kueue has admitted.
//
// +k8s:deepcopy-gen=false
type Admission struct {
	// Framework is the UID of the Framework that is admitted. In the annotation of another Framework, which was
	// copied from that one, it admits nothing. Earlier versions have not written it: without it, an
	// attempt that has begun goes on, and none begins.
	Framework string `json:"framework,omitempty"`
	// Workload is the UID of Kueue's object.
	Workload string `json:"workload"`
	// Attempt is the first attempt that is admitted. When an attempt from that one on is preempted, the
	// admission is used up: no other attempt begins by it.
	Attempt int32 `json:"attempt,omitempty"`
	// Gated says that Kueue's integration of Pods would take the Pods for jobs of their own in
	// this namespace, so that they need LabelGated.
	Gated bool `json:"gated,omitempty"`
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
