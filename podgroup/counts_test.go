// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func member(role string, phase corev1.PodPhase, node string) *corev1.Pod {
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: phase},
	}
	if role != "" {
		pod.Labels = map[string]string{schedulingv1alpha1.LabelRole: role}
	}
	return pod
}

func deleting(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return pod
}

func worker(n int32) Tally {
	if n == 0 {
		return Tally{}
	}
	return Tally{Total: n, Roles: map[string]int32{"worker": n}}
}

func TestCount(t *testing.T) {
	one := worker(1)
	tests := map[string]struct {
		pods []*corev1.Pod
		want Counts
	}{
		"no members": {},
		"a new Pod, before anything wrote its phase": {
			pods: []*corev1.Pod{member("worker", "", "")},
			want: Counts{Members: one},
		},
		"waiting for a node": {
			pods: []*corev1.Pod{member("worker", corev1.PodPending, "")},
			want: Counts{Members: one},
		},
		"placed and starting": {
			pods: []*corev1.Pod{member("worker", corev1.PodPending, "node-1")},
			want: Counts{Members: one, Scheduled: one},
		},
		"running": {
			pods: []*corev1.Pod{member("worker", corev1.PodRunning, "node-1")},
			want: Counts{Members: one, Scheduled: one, Running: one},
		},
		"succeeded gives its place up": {
			pods: []*corev1.Pod{member("worker", corev1.PodSucceeded, "node-1")},
			want: Counts{Members: one, Succeeded: one},
		},
		"failed gives its place up": {
			pods: []*corev1.Pod{member("worker", corev1.PodFailed, "node-1")},
			want: Counts{Members: one, Failed: one},
		},
		"failed without ever being placed": {
			pods: []*corev1.Pod{member("worker", corev1.PodFailed, "")},
			want: Counts{Members: one, Failed: one},
		},
		"running and being deleted: its replacement has to be scheduled": {
			pods: []*corev1.Pod{deleting(member("worker", corev1.PodRunning, "node-1"))},
			want: Counts{Members: one},
		},
		"starting and being deleted": {
			pods: []*corev1.Pod{deleting(member("worker", corev1.PodPending, "node-1"))},
			want: Counts{Members: one},
		},
		"succeeded and being deleted: it did succeed": {
			pods: []*corev1.Pod{deleting(member("worker", corev1.PodSucceeded, "node-1"))},
			want: Counts{Members: one, Succeeded: one},
		},
		"failed and being deleted": {
			pods: []*corev1.Pod{deleting(member("worker", corev1.PodFailed, "node-1"))},
			want: Counts{Members: one, Failed: one},
		},
		"on a node that no longer answers": {
			pods: []*corev1.Pod{member("worker", corev1.PodUnknown, "node-1")},
			want: Counts{Members: one, Scheduled: one},
		},
		"roles apart and members without one": {
			pods: []*corev1.Pod{
				member("worker", corev1.PodRunning, "node-1"),
				member("worker", corev1.PodPending, "node-1"),
				member("ps", corev1.PodRunning, "node-2"),
				member("", corev1.PodRunning, "node-2"),
			},
			want: Counts{
				Members:   Tally{Total: 4, Roles: map[string]int32{"worker": 2, "ps": 1}},
				Scheduled: Tally{Total: 4, Roles: map[string]int32{"worker": 2, "ps": 1}},
				Running:   Tally{Total: 3, Roles: map[string]int32{"worker": 1, "ps": 1}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Count(tc.pods)); diff != "" {
				t.Errorf("Count (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTallyPlusChangesNeither(t *testing.T) {
	a, b := worker(1), worker(2)
	if diff := cmp.Diff(worker(3), a.Plus(b)); diff != "" {
		t.Errorf("sum (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]Tally{worker(1), worker(2)}, []Tally{a, b}); diff != "" {
		t.Errorf("operands (-want,+got):\n%s", diff)
	}
}
