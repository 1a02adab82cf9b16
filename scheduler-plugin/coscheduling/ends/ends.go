// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ends says when running work ends, as far as its limits and estimates tell. It is pure: the caller says what time it
// is. Batch systems plan with such times since Lifka, "The ANL/IBM SP Scheduling System", 1995.
package ends

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// margin is added to each limit: the time for a controller, an API server and a kubelet to end a Pod whose time is over and to
// say so, beside the grace period of the Pod.
const margin = 30 * time.Second

// defaultGrace is the grace period of a Pod that names none, by the defaults of Kubernetes.
const defaultGrace = 30 * time.Second

// End is when work ends.
type End struct {
	// Latest is when the room of the work is free again at the latest. Zero: nothing bounds it.
	Latest time.Time
	// Probable is when the work will probably end, which is not after Latest. Zero: nobody knows.
	Probable time.Time
}

// Until returns the end by which others plan: Probable where estimates count and there is one, else Latest. Zero is unknown.
func (e End) Until(estimates bool) time.Time {
	if estimates && !e.Probable.IsZero() {
		return e.Probable
	}
	return e.Latest
}

// After returns the later of two ends: when work is over that consists of both. What is unknown of one is unknown of both.
func (e End) After(other End) End {
	return End{Latest: bothBy(e.Latest, other.Latest), Probable: bothBy(e.Probable, other.Probable)}
}

func bothBy(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return time.Time{}
	}
	return times.Later(a, b)
}

// OfGang returns when a gang ends whose members are these Pods and whose minimum is this number. Its time counts from when so
// many members have started, and from now while fewer have.
func OfGang(runtime dialect.Runtime, minimum int, members []*corev1.Pod, now time.Time) End {
	begun := now
	var starts []time.Time
	grace := time.Duration(0)
	for _, pod := range members {
		grace = max(grace, graceOf(pod))
		if at := pod.Status.StartTime; at != nil && !at.After(now) {
			starts = append(starts, at.Time)
		}
	}
	if n := max(1, minimum); len(starts) >= n {
		slices.SortFunc(starts, time.Time.Compare)
		begun = starts[n-1]
	}
	return endOf(begun, runtime.Limit, runtime.Expected, grace, now)
}

// OfPod returns when a Pod ends that is in no gang, and when its start is now if it has not started. A deadline of the Pod bounds its room
// only if nobody makes the Pod anew. Otherwise it is an estimate.
func OfPod(pod *corev1.Pod, now time.Time) End {
	begun := now
	if at := pod.Status.StartTime; at != nil && !at.After(now) {
		begun = at.Time
	}
	limit, expected := time.Duration(0), Estimate(pod)
	if deadline := pod.Spec.ActiveDeadlineSeconds; deadline != nil && *deadline > 0 {
		limit = time.Duration(min(*deadline, schedulingv1alpha1.MaxRuntimeSeconds)) * time.Second
		if expected == 0 || expected > limit {
			expected = limit
		}
		if metav1.GetControllerOfNoCopy(pod) != nil {
			limit = 0
		}
	}
	return endOf(begun, limit, expected, graceOf(pod), now)
}

// ByItself reports whether the end of an ordinary Pod may be waited for: it is not restarted for ever, or has a deadline. One
// of a Deployment, a StatefulSet or a DaemonSet does not end, and a static one neither.
func ByItself(pod *corev1.Pod) bool {
	always := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
	return !always || pod.Spec.ActiveDeadlineSeconds != nil
}

// endOf returns the end of work that began at a time.
func endOf(begun time.Time, limit, expected, grace time.Duration, now time.Time) End {
	var end End
	if limit > 0 {
		end.Latest = begun.Add(limit + grace + margin)
		if !end.Latest.After(now) {
			end.Latest = time.Time{} // Whoever was to end the work has not: nothing bounds it.
		}
	}
	if expected > 0 {
		end.Probable = begun.Add(corrected(expected, now.Sub(begun)))
	}
	if !end.Latest.IsZero() && (end.Probable.IsZero() || end.Probable.After(end.Latest)) {
		end.Probable = end.Latest
	}
	return end
}

// corrections are by how much an estimate grows that was too short, one after the other: those that Tsafrir, Etsion and Feitelson
// use in "Backfilling Using System-Generated Predictions Rather than User Runtime Estimates", 2007. The last one repeats.
var corrections = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 20 * time.Hour, 50 * time.Hour, 100 * time.Hour,
}

// corrected returns the estimate for work that has run for a time already: the work runs longer than that.
func corrected(expected, ran time.Duration) time.Duration {
	for step := 0; expected <= ran; step++ {
		expected += corrections[min(step, len(corrections)-1)]
	}
	return expected
}

// Estimate returns the estimate that a Pod has for itself. 0 is unknown.
func Estimate(pod *corev1.Pod) time.Duration {
	seconds, err := strconv.ParseInt(pod.Annotations[schedulingv1alpha1.AnnotationExpectedRuntime], 10, 64)
	if err != nil || seconds < 1 || seconds > schedulingv1alpha1.MaxRuntimeSeconds {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func graceOf(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(max(0, min(*seconds, schedulingv1alpha1.MaxRuntimeSeconds))) * time.Second
	}
	return defaultGrace
}
