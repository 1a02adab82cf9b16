// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestAllProfilesLookAtOneSnapshot(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"))
	w.eventually("the cache has the Pod", func() bool {
		if err := w.inside.UpdateSnapshot(klog.Background()); err != nil {
			t.Fatal(err)
		}
		info, err := w.inside.Snapshot().Get("one")
		return err == nil && len(info.GetPods()) == 1
	})
	if len(w.inside.Profiles()) != 2 {
		t.Fatalf("%d profiles, want both", len(w.inside.Profiles()))
	}
	for name, profile := range w.inside.Profiles() {
		if profile.SnapshotSharedLister() != w.inside.Snapshot().(fwk.SharedLister) {
			t.Errorf("%s looks at another snapshot", name)
		}
	}
}

// TestATrialLeavesTheSnapshotAsItWas: what plugins see changes with the trial, and comes
// back with its end.
func TestATrialLeavesTheSnapshotAsItWas(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"), makePod("b", 0, "one"))
	snapshot := w.inside.Snapshot()
	pods := func() []string {
		info, err := snapshot.Get("one")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, pod := range info.GetPods() {
			names = append(names, pod.GetPod().Name)
		}
		slices.Sort(names)
		return names
	}
	w.eventually("the cache has the Pods", func() bool {
		if err := w.inside.UpdateSnapshot(klog.Background()); err != nil {
			t.Fatal(err)
		}
		return len(pods()) == 2
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	see := func(want ...string) {
		t.Helper()
		if got := pods(); !slices.Equal(got, want) {
			t.Errorf("the node has %v, want %v", got, want)
		}
	}
	must(snapshot.StartMutations())
	must(snapshot.RemovePod(klog.Background(), makePod("a", 0, "one"), "one"))
	see("b")
	// Members are assumed, and forgotten, within a trial, too.
	assumed, err := AssumedPod(w.ctx, framework.NewCycleState(), makePod("c", 0, ""), "one")
	must(err)
	must(snapshot.AssumePod(assumed))
	see("b", "c")
	must(snapshot.ForgetPod(klog.Background(), assumed.Pod))
	see("b")
	must(snapshot.RemovePod(klog.Background(), makePod("b", 0, "one"), "one"))
	must(snapshot.AddPod(&framework.PodInfo{Pod: makePod("a", 0, "one")}, "one"))
	see("a")
	if err := snapshot.StartMutations(); err == nil {
		t.Error("a second trial begins in the first")
	}
	must(snapshot.EndMutations())
	see("a", "b")
}

// TestWhoInterceptsDecidesWhoIsScheduled: the scheduler schedules who is handed to it.
func TestWhoInterceptsDecidesWhoIsScheduled(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"))
	var before Next
	before = w.inside.InterceptNext(func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		for {
			entity, err := before(logger)
			info, ok := entity.(*framework.QueuedPodInfo)
			if err != nil || !ok || info.Pod == nil || info.Pod.Name != "kept" {
				return entity, err
			}
			w.inside.Done(info.Pod)
		}
	})
	w.create(makePod("kept", 10, ""))
	w.create(makePod("ordinary", 0, ""))
	w.run()
	w.eventually("the ordinary Pod has its place", func() bool { return w.pod("ordinary").Spec.NodeName == "one" })
	if node := w.pod("kept").Spec.NodeName; node != "" {
		t.Errorf("the Pod that was kept is on %s", node)
	}
}

// spy is a queue that notes what the scheduler asks of it.
type spy struct {
	internalqueue.SchedulingQueue
	mu    sync.Mutex
	asked []string
}

func (s *spy) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
}

func (s *spy) was(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.asked, what)
}

func (s *spy) Add(ctx context.Context, pod *corev1.Pod) {
	s.note("add " + pod.Name)
	s.SchedulingQueue.Add(ctx, pod)
}

func (s *spy) Update(ctx context.Context, before, after *corev1.Pod) {
	s.note("update " + after.Name)
	s.SchedulingQueue.Update(ctx, before, after)
}

func (s *spy) Delete(logger klog.Logger, pod *corev1.Pod) {
	s.note("delete " + pod.Name)
	s.SchedulingQueue.Delete(logger, pod)
}

func (s *spy) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	s.note("add again " + info.Pod.Name)
	return s.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
}

func (s *spy) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, before, after any, check internalqueue.PreEnqueueCheck) {
	s.note(string(event.Resource))
	s.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, check)
}

// TestTheSchedulerAsksTheQueueInFront: whoever stands in front of the queue hears of each
// Pod and each event, and gets back who found no place.
func TestTheSchedulerAsksTheQueueInFront(t *testing.T) {
	w := newWorld(t, makeNode("one", "1"), makePod("a", 0, "one"))
	front := &spy{}
	front.SchedulingQueue = w.sched.SchedulingQueue
	w.sched.SchedulingQueue = front
	w.run()
	heard := func(what string) {
		t.Helper()
		w.eventually("the queue in front has heard "+what, func() bool { return front.was(what) })
	}
	waiting := makePod("waits", 0, "")
	w.create(waiting)
	heard("add waits")
	heard("add again waits")
	w.eventually("the Pod is told", func() bool { return w.isUnschedulable("waits") })
	changed := w.pod("waits")
	changed.ResourceVersion, changed.Labels["new"] = "2", "label" // the fake API server gives none
	if _, err := w.client.CoreV1().Pods(testNamespace).Update(w.ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	heard("update waits")
	if err := w.client.CoreV1().Pods(testNamespace).Delete(w.ctx, "waits", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	heard("delete waits")
	if _, err := w.client.CoreV1().Nodes().Create(w.ctx, makeNode("two", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	heard(string(fwk.Node))
	w.create(makePod("elsewhere", 0, "two"))
	heard(string(framework.EventAssignedPodAdd.Resource))
}
