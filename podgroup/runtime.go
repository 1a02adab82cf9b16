// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// ReasonInvalidRuntime: an annotation gives a run time that makes no sense, and does not count.
const ReasonInvalidRuntime = "InvalidRuntime"

// Runtimes holds what is known about the run time of a job, in seconds. Nil means unknown.
type Runtimes struct {
	// Max is the limit, after which the job is ended. Expected is an estimate, at most Max.
	Max, Expected *int32
}

// ReadRuntimes reads the run times of a job from its annotations and from fields of its spec. The smallest limit holds.
// An estimate in the annotation overrides the one in the spec. A value outside of 1 to MaxRuntimeSeconds is ignored,
// and problems has a message with its name and the legal range. A nil field is a field that is not set.
func ReadRuntimes(job metav1.Object, fields Runtimes) (runtimes Runtimes, problems []string) {
	annotated := func(key string) *int32 {
		value, set := job.GetAnnotations()[key]
		if !set {
			return nil
		}
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil || !isRuntime(int32(seconds)) {
			problems = append(problems, fmt.Sprintf("the annotation %s is %q and does not count: it must be a whole number of seconds from 1 to %d",
				key, text.Shorten(value, 64), schedulingv1alpha1.MaxRuntimeSeconds))
			return nil
		}
		return ptr.To(int32(seconds))
	}
	set := func(seconds *int32) *int32 {
		if seconds == nil || !isRuntime(*seconds) {
			return nil
		}
		return seconds
	}
	runtimes.Max = Smaller(annotated(schedulingv1alpha1.AnnotationMaxRuntime), set(fields.Max))
	runtimes.Expected = annotated(schedulingv1alpha1.AnnotationExpectedRuntime)
	if runtimes.Expected == nil {
		runtimes.Expected = set(fields.Expected)
	}
	if runtimes.Expected != nil {
		runtimes.Expected = Smaller(runtimes.Expected, runtimes.Max)
	}
	return runtimes, problems
}

func isRuntime(seconds int32) bool {
	return seconds >= 1 && seconds <= schedulingv1alpha1.MaxRuntimeSeconds
}

// Smaller returns the smaller of two numbers of seconds. If one is nil, it returns the other.
func Smaller(a, b *int32) *int32 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// Set writes the run times into the spec of the job's PodGroup.
func (r Runtimes) Set(spec *schedulingv1alpha1.PodGroupSpec) {
	spec.MaxRuntimeSeconds, spec.ExpectedRuntimeSeconds = r.Max, r.Expected
}

// CountRuntime returns the run time limit that is in force from now on. counts is the limit that was in force so far,
// and asked the limit of the spec. The limit begins to count when begun is true, which means that enough of the job
// runs. While it counts, it can be lowered but not raised. Nil means that the job has no limit or has not begun.
func CountRuntime(counts *schedulingv1alpha1.RuntimeLimit, asked *int32, begun bool, now metav1.Time) *schedulingv1alpha1.RuntimeLimit {
	switch {
	case counts == nil && asked != nil && begun:
		return &schedulingv1alpha1.RuntimeLimit{Seconds: *asked, Since: now}
	case counts != nil && asked != nil && *asked < counts.Seconds:
		return &schedulingv1alpha1.RuntimeLimit{Seconds: *asked, Since: counts.Since}
	default:
		return counts
	}
}

// InForce returns the run times of a job, with the limit that counts already, if any.
func (r Runtimes) InForce(counts *schedulingv1alpha1.RuntimeLimit) Runtimes {
	if counts == nil {
		return r
	}
	r.Max = Smaller(r.Max, &counts.Seconds)
	if r.Expected != nil {
		r.Expected = Smaller(r.Expected, r.Max)
	}
	return r
}

// SameLimit reports whether two limits are the same. Either may be nil.
func SameLimit(a, b *schedulingv1alpha1.RuntimeLimit) bool {
	return a == b || a != nil && b != nil && a.Seconds == b.Seconds && a.Since.Equal(&b.Since)
}
