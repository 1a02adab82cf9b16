// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// annotationSize is the annotation on each Pod of a LeaderWorkerSet that says how many Pods the Pod's group has.
const annotationSize = "leaderworkerset.sigs.k8s.io/size"

// maxMembers is the largest total number of members that a group may state. A higher number is ignored.
const maxMembers = 1_000_000

// provisionOf returns the room that a group of any API asks to reserve. If timeout is 0, the timeout is that of the
// group's annotation, if any.
func provisionOf(resources provision.Amounts, timeout time.Duration, annotations map[string]string) Provision {
	if resources.IsZero() {
		return Provision{}
	}
	p := Provision{Resources: resources, Timeout: timeout, Members: countIn(annotations, schedulingv1alpha1.AnnotationExpectedMembers)}
	if asked, err := time.ParseDuration(annotations[schedulingv1alpha1.AnnotationReservationTimeout]); err == nil && timeout <= 0 {
		p.Timeout = max(0, asked)
	}
	return p
}

// SizeOn returns the total number of members that a Pod states for its gang, 0 if the Pod does not state it.
func SizeOn(pod *corev1.Pod) int {
	return countIn(pod.Annotations, annotationSize)
}

// IsStaged reports whether a group, or a Pod of the group, says that the gang comes in stages: the minimum includes
// members that are only created after others have run.
func IsStaged(object metav1.Object) bool {
	return object.GetAnnotations()[schedulingv1alpha1.AnnotationStaged] == "true"
}

// countIn returns the number in an annotation, 0 if there is no valid number.
func countIn(annotations map[string]string, name string) int {
	n, err := strconv.Atoi(annotations[name])
	if err != nil || n < 0 || n > maxMembers {
		return 0
	}
	return n
}
