// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// started is a Pod without a grace period that has started so long before noon, and not yet if that is negative.
func started(ago time.Duration) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](0)}}
	if ago >= 0 {
		pod.Status.StartTime = &metav1.Time{Time: noon.Add(-ago)}
	}
	return pod
}

// in returns how long after noon a time is, and -1 s for no time.
func in(at time.Time) time.Duration {
	if at.IsZero() {
		return -time.Second
	}
	return at.Sub(noon)
}

const unknown = -time.Second

func TestWhenAGangEnds(t *testing.T) {
	for name, test := range map[string]struct {
		runtime          dialect.Runtime
		minimum          int
		members          []*corev1.Pod
		latest, probable time.Duration
	}{
		"nothing is known": {members: []*corev1.Pod{started(0)}, latest: unknown, probable: unknown},
		"it counts from when the minimum runs": {runtime: dialect.Runtime{Limit: time.Hour, Expected: 30 * time.Minute}, minimum: 2,
			members: []*corev1.Pod{started(20 * time.Minute), started(10 * time.Minute), started(time.Minute)}, latest: 50*time.Minute + margin, probable: 20 * time.Minute},
		"fewer run, so it counts from now": {runtime: dialect.Runtime{Limit: time.Hour, Expected: time.Hour}, minimum: 2,
			members: []*corev1.Pod{started(20 * time.Minute), started(-1)}, latest: time.Hour + margin, probable: time.Hour},
		"an estimate alone bounds nothing": {runtime: dialect.Runtime{Expected: time.Hour}, minimum: 1, members: []*corev1.Pod{started(0)}, latest: unknown, probable: time.Hour},
		"a limit that nobody has enforced bounds nothing any more": {runtime: dialect.Runtime{Limit: time.Hour, Expected: time.Hour}, minimum: 1,
			members: []*corev1.Pod{started(2 * time.Hour)}, latest: unknown, probable: 51 * time.Minute},
		"an estimate that was too short grows in steps": {runtime: dialect.Runtime{Expected: 10 * time.Minute}, minimum: 1,
			members: []*corev1.Pod{started(12 * time.Minute)}, latest: unknown, probable: 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			got := OfGang(test.runtime, test.minimum, test.members, noon)
			if in(got.Latest) != test.latest || in(got.Probable) != test.probable {
				t.Errorf("it ends in %v at the latest, probably in %v, want %v and %v", in(got.Latest), in(got.Probable), test.latest, test.probable)
			}
		})
	}
}

func TestWhenAPodEnds(t *testing.T) {
	hour := func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](3600) }
	half := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{schedulingv1alpha1.AnnotationExpectedRuntime: "1800"}
	}
	owned := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: ptr.To(true)}}
	}
	for name, test := range map[string]struct {
		change           []func(*corev1.Pod)
		latest, probable time.Duration
	}{
		"nothing is known":           {latest: unknown, probable: unknown},
		"a deadline":                 {change: []func(*corev1.Pod){hour}, latest: 50*time.Minute + margin, probable: 50 * time.Minute},
		"a deadline and an estimate": {change: []func(*corev1.Pod){hour, half}, latest: 50*time.Minute + margin, probable: 20 * time.Minute},
		"a deadline of a Pod that somebody makes anew": {change: []func(*corev1.Pod){hour, owned}, latest: unknown, probable: 50 * time.Minute},
		"its grace period counts":                      {change: []func(*corev1.Pod){hour, func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = nil }}, latest: 50*time.Minute + margin + 30*time.Second, probable: 50 * time.Minute},
		"an estimate that can't be read": {change: []func(*corev1.Pod){func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{schedulingv1alpha1.AnnotationExpectedRuntime: "1h"}
		}}, latest: unknown, probable: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			pod := started(10 * time.Minute)
			for _, change := range test.change {
				change(pod)
			}
			got := OfPod(pod, noon)
			if in(got.Latest) != test.latest || in(got.Probable) != test.probable {
				t.Errorf("it ends in %v at the latest, probably in %v, want %v and %v", in(got.Latest), in(got.Probable), test.latest, test.probable)
			}
		})
	}
}

// TestAStartInAnotherCenturyHangsNothing: whoever may write the status of a Pod may write any start.
func TestAStartInAnotherCenturyHangsNothing(t *testing.T) {
	pod := started(0)
	pod.Status.StartTime.Time = time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)
	pod.Annotations = map[string]string{schedulingv1alpha1.AnnotationExpectedRuntime: "60"}
	if got := OfPod(pod, noon); !got.Probable.After(noon) || in(got.Probable) > 100*time.Hour {
		t.Errorf("the Pod, which has run for longer than it was to, probably ends in %v, want some hours", in(got.Probable))
	}
}

func TestWhatEndsByItself(t *testing.T) {
	tests := map[string]struct {
		spec      corev1.PodSpec
		estimates string
		want      bool
	}{
		"a service with an estimate":        {estimates: "60", want: true},
		"no service with a wrong estimate":  {estimates: "1h"},
		"a Pod of a Job":                    {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure}, want: true},
		"a Pod that is never restarted":     {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}, want: true},
		"a service with a deadline":         {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, ActiveDeadlineSeconds: ptr.To[int64](60)}, want: true},
		"no Pod that is always restarted":   {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}},
		"nor one that says nothing of that": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{schedulingv1alpha1.AnnotationExpectedRuntime: tc.estimates}
			if got := ByItself(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: tc.spec}); got != tc.want {
				t.Errorf("it ends: %t, want %t", got, tc.want)
			}
		})
	}
}
