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

// annotationSize is how a LeaderWorkerSet says on each Pod how many there are in its group.
const annotationSize = "leaderworkerset.sigs.k8s.io/size"

// maxMembers is how many members may be said to come. A Pod more would not be believed of any
// cluster.
const maxMembers = 1_000_000

// provisionOf is what a group asks to have kept, of any dialect. A timeout of 0 is none; then its
// annotation counts.
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

// SizeOn is how many members a gang has in all by what one of its Pods says, 0 if that says
// nothing.
func SizeOn(pod *corev1.Pod) int {
	return countIn(pod.Annotations, annotationSize)
}

// IsStaged says whether a group, or a Pod for its group, says that the minimum counts members which only come
// after others have run.
func IsStaged(object metav1.Object) bool {
	return object.GetAnnotations()[schedulingv1alpha1.AnnotationStaged] == "true"
}

// countIn is the number of an annotation, 0 if it has none that can be read.
func countIn(annotations map[string]string, name string) int {
	n, err := strconv.Atoi(annotations[name])
	if err != nil || n < 0 || n > maxMembers {
		return 0
	}
	return n
}
