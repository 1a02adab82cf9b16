// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ends computes when running work ends, from limits and estimates. The package is pure: the caller passes the
// time. Batch systems plan with such times since Lifka, "The ANL/IBM SP Scheduling System", 1995.
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

// margin is added to each limit, beside the Pod's grace period. It is the time that a controller, the API server and a
// kubelet may take to end a Pod and to report the end.
const margin = 30 * time.Second

// defaultGrace is Kubernetes' default grace period.
const defaultGrace = 30 * time.Second

// End is when work ends.
type End struct {
	// Latest is the time by which the work must have freed its room. Zero: no limit.
	Latest time.Time
	// Probable is when the work will probably end, not after Latest. Zero: unknown.
	Probable time.Time
}

// Until returns the end to plan with: Probable if `estimates` is set and Probable is known, else Latest. Zero: unknown.
func (e End) Until(estimates bool) time.Time {
	if estimates && !e.Probable.IsZero() {
		return e.Probable
	}
	return e.Latest
}

// OfGang returns when a gang ends. members are its Pods. The run time counts from the time at which the gang's minimum
// had started or, if fewer members have started, from now.
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

// OfPod returns when a Pod without a gang ends. A Pod that has not started counts as started now. activeDeadlineSeconds
// is a limit only for a Pod without a controller. For any other it is an estimate, because the controller may recreate
// the Pod.
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

// ByItself reports whether an ordinary Pod will end by itself: it has a deadline or an estimate, or its restartPolicy is not
// Always. Other Pods of Deployments, StatefulSets and DaemonSets, and static Pods, do not.
func ByItself(pod *corev1.Pod) bool {
	always := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
	return !always || pod.Spec.ActiveDeadlineSeconds != nil || Estimate(pod) > 0
}

// WithNode reports whether a Pod stays on its node as long as the node exists: a DaemonSet or the node itself controls it.
func WithNode(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// longest is for how long work may have run. Work with an earlier start, which only a wrong status can have, counts as
// started then.
const longest = 2 * schedulingv1alpha1.MaxRuntimeSeconds * time.Second

// endOf returns the end of work that began at a time.
func endOf(begun time.Time, limit, expected, grace time.Duration, now time.Time) End {
	var end End
	begun = times.Later(begun, now.Add(-longest))
	if limit > 0 {
		end.Latest = begun.Add(limit + grace + margin)
		if !end.Latest.After(now) {
			end.Latest = time.Time{} // the limit has passed and the work was not ended: nothing limits the work
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

// corrections are the times by which an estimate that was too short is extended, one after the other; the last one
// repeats. They are from Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions Rather than
// User Runtime Estimates", 2007.
var corrections = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 20 * time.Hour, 50 * time.Hour, 100 * time.Hour,
}

// corrected returns the estimate for work that has already run longer than its estimate.
func corrected(expected, ran time.Duration) time.Duration {
	for step := 0; expected <= ran; step++ {
		expected += corrections[min(step, len(corrections)-1)]
	}
	return expected
}

// Estimate returns the estimate in a Pod's annotation, 0 if none.
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
