// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// realQueue stands in for the scheduler's own queue and notes which Pods are in it.
type realQueue struct {
	internalqueue.SchedulingQueue
	pods map[types.UID]*corev1.Pod
}

func (q *realQueue) Add(_ context.Context, pod *corev1.Pod)       { q.pods[pod.UID] = pod }
func (q *realQueue) Update(_ context.Context, _, pod *corev1.Pod) { q.pods[pod.UID] = pod }
func (q *realQueue) Delete(_ klog.Logger, pod *corev1.Pod)        { delete(q.pods, pod.UID) }
func (q *realQueue) Done(types.UID)                               {}
func (q *realQueue) GetPod(name, _ string, _ *corev1.PodSchedulingGroup) (*framework.QueuedPodInfo, bool) {
	for _, pod := range q.pods {
		if pod.Name == name {
			return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}, true
		}
	}
	return nil, false
}

// TestMembersStayOutOfTheQueue, and count as gated.
func TestMembersStayOutOfTheQueue(t *testing.T) {
	ordinary, member, elsewhere := makePod("pod", 0, ""), makePod("pod", 0, ""), makePod("pod", 0, "")
	member.Labels["gang"], elsewhere.Labels["gang"] = "one", "another"
	again := member.DeepCopy()
	again.UID = "made-anew"
	ctx := t.Context()
	tests := map[string]struct {
		do         func(q *Queue)
		isGone     bool        // by the informer's store
		wantQueued *corev1.Pod // in the real queue
		wantGated  float64     // told as gated, beside what the real queue holds back
	}{
		"an ordinary Pod": {
			do:         func(q *Queue) { q.Add(ctx, ordinary) },
			wantQueued: ordinary,
		},
		"a member": {
			do:        func(q *Queue) { q.Add(ctx, member) },
			wantGated: 1,
		},
		"a member that is gone": {
			do: func(q *Queue) { q.Add(ctx, member); q.Delete(klog.Background(), member) },
		},
		"a member that is placed": {
			do: func(q *Queue) { q.Add(ctx, member); q.Forget(member) },
		},
		"a member that could not be bound": {
			do: func(q *Queue) {
				q.Add(ctx, member)
				q.Forget(member)
				info := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: member}}
				if err := q.AddUnschedulablePodIfNotPresent(klog.Background(), info, 0); err != nil {
					t.Error(err)
				}
			},
			wantGated: 1,
		},
		"a member that could not be bound and has gone meanwhile": {
			do: func(q *Queue) {
				q.Delete(klog.Background(), member)
				info := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: member}}
				if err := q.AddUnschedulablePodIfNotPresent(klog.Background(), info, 0); err != nil {
					t.Error(err)
				}
			},
			isGone: true,
		},
		"a member that changes": {
			do:        func(q *Queue) { q.Add(ctx, member); q.Update(ctx, member, member) },
			wantGated: 1,
		},
		"a member that is made anew": {
			do:        func(q *Queue) { q.Add(ctx, member); q.Update(ctx, member, again) },
			wantGated: 1,
		},
		"a member that is moved to another gang": {
			do:        func(q *Queue) { q.Add(ctx, member); q.Update(ctx, member, elsewhere) },
			wantGated: 1,
		},
		"a member that is taken out of its gang": {
			do:         func(q *Queue) { q.Add(ctx, member); q.Update(ctx, member, ordinary) },
			wantQueued: ordinary,
		},
		"an ordinary Pod that becomes a member": {
			do:        func(q *Queue) { q.Add(ctx, ordinary); q.Update(ctx, ordinary, member) },
			wantGated: 1,
		},
	}
	metrics.Register()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := gated(t)
			inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
			q := newQueue(inner, func(pod *corev1.Pod) bool { return pod.Labels["gang"] != "" }, nil, func(*corev1.Pod) {},
				func(*corev1.Pod) bool { return !tc.isGone })
			tc.do(q)
			want := map[types.UID]*corev1.Pod{}
			if tc.wantQueued != nil {
				want[tc.wantQueued.UID] = tc.wantQueued
			}
			if diff := cmp.Diff(want, inner.pods); diff != "" {
				t.Errorf("Pods in the real queue (-want, +got):\n%s", diff)
			}
			if got := gated(t) - before; got != tc.wantGated {
				t.Errorf("%v more Pods are told as gated, want %v", got, tc.wantGated)
			}
		})
	}
}

func gated(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetGaugeMetricValue(metrics.GatedPods())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
