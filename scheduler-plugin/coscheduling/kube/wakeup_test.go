// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// TestTheBellHangsOnceForAPriority: however often it rings for one, one Pod of it is in the
// queue, and keeps its place there.
func TestTheBellHangsOnceForAPriority(t *testing.T) {
	w := newWorld(t)
	queue := KeepOut(w.inside, func(*corev1.Pod) bool { return false }, func(fwk.ClusterEvent, any, any) {}, func(*corev1.Pod) {})
	for _, priority := range []int32{5, 3, 5, 7, 3} {
		queue.WakeUps.Put(w.ctx, priority)
	}
	if n := len(queue.PodsInActiveQ()); n != 3 {
		t.Errorf("%d Pods hang for three priorities", n)
	}
	if queue.Outranked(0) {
		t.Error("the wake-up entry is taken for an ordinary Pod that outranks gangs")
	}
	for _, want := range []int32{7, 5, 3} {
		entity, err := w.sched.NextEntity(klog.Background())
		if err != nil {
			t.Fatal(err)
		}
		priority, since, ok := queue.WakeUps.Take(entity.(*framework.QueuedPodInfo).Pod)
		if !ok || priority != want || since.IsZero() {
			t.Errorf("heard for %d since %v, want for %d", priority, since, want)
		}
	}
	queue.WakeUps.Put(w.ctx, 5)
	if n := len(queue.PodsInActiveQ()); n != 1 {
		t.Errorf("%d Pods hang after it was heard and rang again", n)
	}
	if _, _, ok := queue.WakeUps.Take(makePod("ordinary", 1, "")); ok {
		t.Error("an ordinary Pod is taken for the wake-up entry's")
	}
}

// TestTheBellHasItsTurnByPriority: kube-scheduler's own queue hands its Pod out among the
// ordinary ones, though no profile serves it, and not the Pods that are kept out.
func TestTheBellHasItsTurnByPriority(t *testing.T) {
	w := newWorld(t)
	queue := KeepOut(w.inside, func(pod *corev1.Pod) bool { return pod.Name == "kept" }, func(fwk.ClusterEvent, any, any) {}, func(*corev1.Pod) {})
	for name, priority := range map[string]int32{"high": 10, "kept": 10, "low": 1} {
		w.create(makePod(name, priority, ""))
	}
	w.eventually("all Pods are known", func() bool {
		pods, _ := w.sched.SchedulingQueue.PendingPods()
		return len(pods) == 3
	})
	queue.WakeUps.Put(w.ctx, 5)
	if pods, _ := w.sched.SchedulingQueue.PendingPods(); len(pods) != 3 {
		t.Errorf("%d Pods are told of as waiting, want 3: the wake-up entry is none", len(pods))
	}
	var got []string
	for range 3 {
		entity, err := w.sched.NextEntity(klog.Background())
		if err != nil {
			t.Fatal(err)
		}
		pod := entity.(*framework.QueuedPodInfo).Pod
		name := pod.Name
		if priority, _, rung := queue.WakeUps.Take(pod); rung && priority == 5 {
			name = "bell"
		}
		got = append(got, name)
	}
	if diff := cmp.Diff([]string{"high", "bell", "low"}, got); diff != "" {
		t.Errorf("turns (-want, +got):\n%s", diff)
	}
	if in := w.sched.SchedulingQueue.InFlightPods(); len(in) != 2 {
		t.Errorf("%d Pods have their turn, want the two ordinary ones", len(in))
	}
}

// TestARingCountsInTheMetricsOfTheQueue as docs/scheduler-design.md says: kube-scheduler counts what
// enters its queue, and offers no way around that.
func TestARingCountsInTheMetricsOfTheQueue(t *testing.T) {
	w := newWorld(t)
	queue := KeepOut(w.inside, func(*corev1.Pod) bool { return false }, func(fwk.ClusterEvent, any, any) {}, func(*corev1.Pod) {})
	// It goes on from the back-off by ForceActivate, where there is one.
	count := func() (n float64) {
		t.Helper()
		for _, where := range []string{"active", "backoff", "unschedulable"} {
			value, err := testutil.GetCounterMetricValue(metrics.SchedulerQueueIncomingPods.WithLabelValues(where, framework.ScheduleAttemptFailure))
			if err != nil {
				t.Fatal(err)
			}
			n += value
		}
		return n
	}
	before := count()
	for _, priority := range []int32{5, 3, 5, 7, 3} {
		queue.WakeUps.Put(w.ctx, priority)
	}
	if n := count() - before; n != 3 {
		t.Errorf("three Pods of the wake-up entry count %v times, want once each", n)
	}
}
