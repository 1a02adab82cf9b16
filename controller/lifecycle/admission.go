// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// A Framework may be in a queue of Kueue. Then no attempt begins before Kueue has admitted the Framework, which an
// annotation says, and a running attempt ends when the annotation goes. Another attempt follows when the Framework is
// admitted again: that is no failure of the Framework, so the retry does not count.

// annotationGatedFor is an annotation of Pods that names the controller which removes Kueue's gate. Kueue's integration
// of Pods gates such a Pod, but creates no Workload for it.
const annotationGatedFor = "kueue.x-k8s.io/pod-suspending-parent"

// isHeld reports whether the Framework is in a queue and not admitted.
func (d *decision) isHeld() bool {
	if !d.Options.Queues || d.Framework.Labels[frameworkv1.LabelQueue] == "" {
		return false
	}
	admission := AdmissionOf(d.Framework)
	switch {
	case admission == nil:
		return true
	case admission.Framework == "": // An earlier version has written it.
		return d.next == nil || d.next.AttemptStatus.ConfigMapUID == nil
	default:
		return admission.Framework != string(d.Framework.UID)
	}
}

// admissionIsUsedUp reports whether the last attempt was admitted and then preempted. Before the next attempt begins,
// the quota returns to the queue, and the annotation with the admission is removed.
func (d *decision) admissionIsUsedUp() bool {
	attempt := &d.next.AttemptStatus
	return d.Options.Queues && d.Framework.Labels[frameworkv1.LabelQueue] != "" && UsesUp(attempt, AdmissionOf(d.Framework))
}

// UsesUp reports whether the end of an attempt uses up an admission.
func UsesUp(attempt *frameworkv1.FrameworkAttemptStatus, admission *frameworkv1.Admission) bool {
	end := attempt.CompletionStatus
	return end != nil && end.Disruption == frameworkv1.DisruptionPreempted && admission != nil && admission.Attempt <= attempt.ID
}

// AdmissionOf returns the admission that a Framework's annotation contains; nil if there is none, or the annotation
// can't be decoded.
func AdmissionOf(framework *frameworkv1.Framework) *frameworkv1.Admission {
	admission := &frameworkv1.Admission{}
	if json.Unmarshal([]byte(framework.Annotations[frameworkv1.AnnotationAdmission]), admission) != nil || admission.Workload == "" {
		return nil
	}
	return admission
}

// giveWay ends the attempt if the Framework is not admitted any more.
func (d *decision) giveWay() (goOn bool) {
	if d.isHeld() && !d.completing() {
		d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodeAdmissionWithdrawn,
			"Kueue has withdrawn the admission of the Framework"))
	}
	return true
}

// goWhereAdmitted restricts a Pod to the nodes of the role's admission.
func (b *podBuilder) goWhereAdmitted(pod *corev1.Pod) {
	if b.framework.Labels[frameworkv1.LabelQueue] == "" {
		return
	}
	admission := AdmissionOf(b.framework)
	if admission == nil {
		return
	}
	role := admission.Roles[b.role.Name]
	pod.Spec.NodeSelector = jobpods.With(pod.Spec.NodeSelector, role.NodeSelector)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, role.Tolerations...)
	if admission.Gated {
		pod.Labels = jobpods.With(pod.Labels, map[string]string{frameworkv1.LabelGated: "true"})
		pod.Annotations = jobpods.With(pod.Annotations, map[string]string{annotationGatedFor: "lockstep"})
	}
}
