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

// annotationSize is the annotation by which a LeaderWorkerSet says on each Pod how many Pods its group has.
const annotationSize = "leaderworkerset.sigs.k8s.io/size"

// maxMembers is the largest announced number of members that counts; a higher number is ignored.
const maxMembers = 1_000_000

// provisionOf returns what a group of any API asks to keep. A timeout of 0 means that the group's annotation counts.
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

// SizeOn returns how many members a gang has in all, as one of its Pods says, 0 if the Pod does not say.
func SizeOn(pod *corev1.Pod) int {
	return countIn(pod.Annotations, annotationSize)
}

// IsStaged reports whether a group, or a Pod for its group, says that the minimum counts members which only come after
// others have run.
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
