// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestTheBellRingsOnceForTheHighest: however often it rings, one Pod of it is in the queue,
// with the highest priority for which it rang.
func TestTheBellRingsOnceForTheHighest(t *testing.T) {
	inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
	b := &Bell{queue: inner}
	hangs := func(when string, want ...int32) {
		t.Helper()
		var got []int32
		for _, pod := range inner.pods {
			got = append(got, *pod.Spec.Priority)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("priorities in the queue %s (-want, +got):\n%s", when, diff)
		}
	}
	hear := func() (priority int32) {
		t.Helper()
		for uid, pod := range inner.pods {
			delete(inner.pods, uid)
			priority, ok := b.Heard(pod)
			if !ok {
				t.Error("the bell's Pod is taken for another one")
			}
			return priority
		}
		return 0
	}
	b.Ring(t.Context(), 5)
	b.Ring(t.Context(), 5)
	b.Ring(t.Context(), 3)
	hangs("when it rang for 5, and for 3", 5)
	b.Ring(t.Context(), 7)
	hangs("when it rang for 7, too", 7)
	if got := hear(); got != 7 {
		t.Errorf("it is heard for %d, want 7", got)
	}
	hangs("when it was heard")
	b.Ring(t.Context(), 1)
	hangs("when it rang again", 1)
	if _, ok := b.Heard(makePod("ordinary", 1, "")); ok {
		t.Error("an ordinary Pod is taken for the bell's")
	}
}

// TestTheBellHasItsTurnByPriority: kube-scheduler's own queue hands its Pod out among the
// ordinary ones, and not the Pods that are kept out. It is of a profile, or the queue would
// log an error each time.
func TestTheBellHasItsTurnByPriority(t *testing.T) {
	w := newWorld(t)
	queue := w.inside.KeepOut(func(pod *corev1.Pod) bool { return pod.Name == "kept" }, func(fwk.ClusterEvent, any, any) {})
	for name, priority := range map[string]int32{"high": 10, "kept": 10, "low": 1} {
		w.create(makePod(name, priority, ""))
	}
	w.eventually("all Pods are known", func() bool {
		pods, _ := w.sched.SchedulingQueue.PendingPods()
		return len(pods) == 3
	})
	queue.Bell.Ring(w.ctx, 5)
	if pods, _ := w.sched.SchedulingQueue.PendingPods(); len(pods) != 3 {
		t.Errorf("%d Pods are told of as waiting, want 3: the bell is none", len(pods))
	}
	var got []string
	for range 3 {
		entity, err := w.sched.NextEntity(klog.Background())
		if err != nil {
			t.Fatal(err)
		}
		pod := entity.(*framework.QueuedPodInfo).Pod
		name := pod.Name
		if priority, rung := queue.Bell.Heard(pod); rung && priority == 5 {
			name = "bell"
			if w.sched.Profiles[pod.Spec.SchedulerName] == nil {
				t.Errorf("the bell is of the profile %q, which there is not", pod.Spec.SchedulerName)
			}
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
