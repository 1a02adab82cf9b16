// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// A Framework may be in a queue of Kueue. Then no attempt of it begins before Kueue has admitted
// it, which an annotation says, and one that has begun ends when the annotation goes. Another one
// follows when it is admitted again: that is no failure of the Framework, so it does not count.

// isHeld says whether the Framework is in a queue and not admitted.
func (d *decision) isHeld() bool {
	return d.Options.Queues && d.Framework.Labels[frameworkv1.LabelQueue] != "" && d.Framework.Annotations[frameworkv1.AnnotationAdmission] == ""
}

// giveWay ends the attempt if the Framework is not admitted any more.
func (d *decision) giveWay() (goOn bool) {
	if d.isHeld() && !d.completing() {
		d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodeAdmissionWithdrawn,
			"Kueue has withdrawn the admission of the Framework"))
	}
	return true
}

// goWhereAdmitted has a Pod run where its role is admitted. What makes no sense is not said.
func (b *podBuilder) goWhereAdmitted(pod *corev1.Pod) {
	if b.framework.Labels[frameworkv1.LabelQueue] == "" {
		return
	}
	var admission frameworkv1.Admission
	if json.Unmarshal([]byte(b.framework.Annotations[frameworkv1.AnnotationAdmission]), &admission) != nil {
		return
	}
	role := admission.Roles[b.role.Name]
	pod.Spec.NodeSelector = merge(pod.Spec.NodeSelector, role.NodeSelector)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, role.Tolerations...)
}
