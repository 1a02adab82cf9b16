// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
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
	ordinary, member, elsewhere := makePod("pod"), makePod("pod", inGroup("gang")), makePod("pod", inGroup("another"))
	ctx := t.Context()
	tests := map[string]struct {
		do         func(q *gangQueue)
		wantQueued *corev1.Pod // in the real queue
		wantGated  float64     // told as gated, beside what the real queue holds back
	}{
		"an ordinary Pod": {
			do:         func(q *gangQueue) { q.Add(ctx, ordinary) },
			wantQueued: ordinary,
		},
		"a member": {
			do:        func(q *gangQueue) { q.Add(ctx, member) },
			wantGated: 1,
		},
		"a member that is gone": {
			do: func(q *gangQueue) { q.Add(ctx, member); q.Delete(klog.Background(), member) },
		},
		"a member that is placed": {
			do: func(q *gangQueue) { q.Add(ctx, member); q.forget(member) },
		},
		"a member that could not be bound": {
			do: func(q *gangQueue) {
				q.Add(ctx, member)
				q.forget(member)
				info := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: member}}
				if err := q.AddUnschedulablePodIfNotPresent(klog.Background(), info, 0); err != nil {
					t.Error(err)
				}
			},
			wantGated: 1,
		},
		"a member that changes": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, member) },
			wantGated: 1,
		},
		"a member that is made anew": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, madeAnew(member)) },
			wantGated: 1,
		},
		"a member that is moved to another gang": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, elsewhere) },
			wantGated: 1,
		},
		"a member that is taken out of its gang": {
			do:         func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, ordinary) },
			wantQueued: ordinary,
		},
		"an ordinary Pod that becomes a member": {
			do:        func(q *gangQueue) { q.Add(ctx, ordinary); q.Update(ctx, ordinary, member) },
			wantGated: 1,
		},
	}
	metrics.Register()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := gated(t)
			inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
			q := &gangQueue{SchedulingQueue: inner, members: map[types.UID]*corev1.Pod{}, gone: func(*corev1.Pod) {},
				keepsOut: func(pod *corev1.Pod) bool { return pod.Labels[schedulingv1alpha1.LabelPodGroup] != "" }}
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

// TestPendingPods: members are told of among the Pods that wait, each once.
func TestPendingPods(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode), makePod("ordinary"),
		makeGroup("gang", 2), makeMembers("gang", 2))...)
	w.standBy()
	w.eventually("all that wait are told of", func() bool {
		pods, _ := w.sched.SchedulingQueue.PendingPods()
		return len(pods) == 3
	})
	w.tracker().setSynced()
	w.eventually("the bell rings for the gang, and is not told of", func() bool {
		pods, _ := w.sched.SchedulingQueue.PendingPods()
		return len(w.sched.SchedulingQueue.PodsInActiveQ()) == 2 && len(pods) == 3
	})
}

func gated(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetGaugeMetricValue(metrics.GatedPods())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWaitingGangsAreNotAsked: on a full cluster a gang and an ordinary Pod wait.
// What happens there is put to the Pod only, as the queue would put it to each of
// the members.
func TestWaitingGangsAreNotAsked(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode), makePod("ordinary"),
		makeGroup("gang", 3), makeMembers("gang", 3))...)
	w.start()
	w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	w.eventually("the ordinary Pod waits, alone", func() bool {
		waiting := w.sched.SchedulingQueue.UnschedulablePods()
		return len(waiting) == 1 && waiting[0].Name == "ordinary"
	})
}
