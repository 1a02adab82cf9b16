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
	pods      map[types.UID]*corev1.Pod
	activated int
}

func (q *realQueue) Add(_ context.Context, pod *corev1.Pod)       { q.pods[pod.UID] = pod }
func (q *realQueue) Update(_ context.Context, _, pod *corev1.Pod) { q.pods[pod.UID] = pod }
func (q *realQueue) Delete(_ klog.Logger, pod *corev1.Pod)        { delete(q.pods, pod.UID) }
func (q *realQueue) Activate(klog.Logger, map[string]*corev1.Pod) { q.activated++ }
func (q *realQueue) Done(types.UID)                               {}
func (q *realQueue) GetPod(name, _ string, _ *corev1.PodSchedulingGroup) (*framework.QueuedPodInfo, bool) {
	for _, pod := range q.pods {
		if pod.Name == name {
			return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}, true
		}
	}
	return nil, false
}

// TestMembersStayOutOfTheQueue: only who is to have a turn is in the real queue.
func TestMembersStayOutOfTheQueue(t *testing.T) {
	ordinary, member, elsewhere := makePod("pod"), makePod("pod", inGroup("gang")), makePod("pod", inGroup("another"))
	ctx := t.Context()
	tests := map[string]struct {
		do         func(q *gangQueue)
		wantQueued *corev1.Pod // in the real queue
		wantGated  float64     // told as gated, beside what the real queue holds back
		wantSeen   []string    // gangs that are told of a member
	}{
		"an ordinary Pod": {
			do:         func(q *gangQueue) { q.Add(ctx, ordinary) },
			wantQueued: ordinary,
		},
		"a member": {
			do:        func(q *gangQueue) { q.Add(ctx, member) },
			wantGated: 1, wantSeen: []string{"gang"},
		},
		"a leader whose gang is to be planned": {
			do:         func(q *gangQueue) { q.Add(ctx, member); q.lineUp(ctx, member) },
			wantQueued: member, wantGated: 1, wantSeen: []string{"gang"},
		},
		"a leader of which only the engine has heard": {
			do: func(q *gangQueue) { q.lineUp(ctx, member) },
		},
		"a leader of whose end only the scheduler has heard": {
			do: func(q *gangQueue) {
				q.Add(ctx, member)
				q.Delete(klog.Background(), member)
				q.lineUp(ctx, member)
			},
			wantSeen: []string{"gang"},
		},
		"a member that is placed": {
			do:       func(q *gangQueue) { q.Add(ctx, member); q.forget(member) },
			wantSeen: []string{"gang"},
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
			wantGated: 1, wantSeen: []string{"gang", "gang"},
		},
		"a member that changes": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, member) },
			wantGated: 1, wantSeen: []string{"gang"},
		},
		"a leader in line that is made anew": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.lineUp(ctx, member); q.Update(ctx, member, madeAnew(member)) },
			wantGated: 1, wantSeen: []string{"gang", "gang"},
		},
		"a leader in line that changes": {
			do:         func(q *gangQueue) { q.Add(ctx, member); q.lineUp(ctx, member); q.Update(ctx, member, member) },
			wantQueued: member, wantGated: 1, wantSeen: []string{"gang"},
		},
		"a leader in line that is moved to another gang": {
			do:        func(q *gangQueue) { q.Add(ctx, member); q.lineUp(ctx, member); q.Update(ctx, member, elsewhere) },
			wantGated: 1, wantSeen: []string{"gang"},
		},
		"a member that is taken out of its gang": {
			do:         func(q *gangQueue) { q.Add(ctx, member); q.Update(ctx, member, ordinary) },
			wantQueued: ordinary, wantSeen: []string{"gang"},
		},
		"an ordinary Pod that becomes a member": {
			do:        func(q *gangQueue) { q.Add(ctx, ordinary); q.Update(ctx, ordinary, member) },
			wantGated: 1, wantSeen: []string{"gang"},
		},
	}
	metrics.Register()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := gated(t)
			inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
			var seen []string
			q := &gangQueue{SchedulingQueue: inner, members: map[types.UID]*corev1.Pod{},
				keepsOut: func(pod *corev1.Pod) bool { return pod.Labels[schedulingv1alpha1.LabelPodGroup] != "" },
				seen:     func(gang types.NamespacedName) { seen = append(seen, gang.Name) }}
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
			if diff := cmp.Diff(tc.wantSeen, seen); diff != "" {
				t.Errorf("gangs that are told of a member (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestLeaderThatIsHeldBack: another plugin keeps the leader from its turn, until
// its gang is to be planned anew.
func TestLeaderThatIsHeldBack(t *testing.T) {
	inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
	q := &gangQueue{SchedulingQueue: inner, members: map[types.UID]*corev1.Pod{}, seen: func(types.NamespacedName) {},
		keepsOut: func(*corev1.Pod) bool { return true }}
	leader := makePod("leader", inGroup("gang"))
	q.Add(t.Context(), leader)
	q.lineUp(t.Context(), leader)
	if inner.activated != 0 {
		t.Error("a leader that comes into the queue is activated too")
	}
	q.lineUp(t.Context(), leader)
	if inner.activated != 1 {
		t.Errorf("a leader that stands in line is activated %d times, want once", inner.activated)
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
	w.eventually("the leader stands in line, and is told of once", func() bool {
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
