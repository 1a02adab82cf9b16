// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// someGangs are gangs by the names of their Pods.
type someGangs struct {
	// spared may not be taken.
	spared []string
	// rest are the Pods that go as well, by the Pod that goes.
	rest map[string][]*corev1.Pod
}

func (g someGangs) MayBeTaken(victim, _ *corev1.Pod) bool {
	return !slices.Contains(g.spared, victim.Name)
}
func (g someGangs) Cost(victim *corev1.Pod) int { return 1 + len(g.rest[victim.Name]) }
func (g someGangs) Take(*corev1.Pod) bool       { return true }
func (g someGangs) Spare(*corev1.Pod)           {}
func (g someGangs) Rest(victims []*corev1.Pod) []*corev1.Pod {
	var rest []*corev1.Pod
	for _, pod := range victims {
		rest = append(rest, g.rest[pod.Name]...)
	}
	return rest
}

// TestTheDefaultPreemptionAsksAboutGangs: a Pod of two cores and a high priority comes to
// two nodes that are full.
func TestTheDefaultPreemptionAsksAboutGangs(t *testing.T) {
	a, b := makePod("a", 0, "one"), makePod("b", 0, "one") // of a core each
	c, d := makePod("c", 0, "two"), makePod("d", 0, "two")
	all := []string{"a", "b", "c", "d"}
	tests := map[string]struct {
		gangs   someGangs
		budgets []runtime.Object
		cores   int      // that the Pod wants
		left    []string // of all
		waits   bool
	}{
		"IsEligiblePod: nobody who may not be taken is": {
			gangs: someGangs{spared: []string{"a"}}, cores: 2, left: []string{"a", "b"},
		},
		"IsEligiblePod: it waits if there is nobody else": {
			gangs: someGangs{spared: []string{"a", "c"}}, cores: 2, left: all, waits: true,
		},
		"MoreImportantVictim: of two on a node the one that costs less goes": {
			gangs: someGangs{spared: []string{"c", "d"}, rest: map[string][]*corev1.Pod{"b": {c}}}, cores: 1, left: []string{"b", "c", "d"},
		},
		"MoreImportantVictim: it is no matter of their names": {
			gangs: someGangs{spared: []string{"c", "d"}, rest: map[string][]*corev1.Pod{"a": {c}}}, cores: 1, left: []string{"a", "c", "d"},
		},
		"Evaluator: the node goes whose victims take the fewest along": {
			gangs: someGangs{rest: map[string][]*corev1.Pod{"a": {c}, "b": {d}}}, cores: 2, left: []string{"a", "b"},
		},
		"Evaluator: the victims' gangs go with them": {
			gangs: someGangs{spared: []string{"c", "d"}, rest: map[string][]*corev1.Pod{"a": {c}}}, cores: 2, left: []string{"d"},
		},
		"Evaluator: what protects those that go along counts": {
			gangs:   someGangs{rest: map[string][]*corev1.Pod{"a": {makePod("e", 0, "three")}, "c": {makePod("f", 0, "three"), makePod("g", 0, "three")}}},
			budgets: []runtime.Object{makeBudget("budget", 0, "e")}, cores: 2, left: []string{"a", "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append([]runtime.Object{makeNode("one", "2"), makeNode("two", "2"), a, b, c, d}, tc.budgets...)...)
			if !GuardPreemption(w.ctx, w.inside, w.profile(), tc.gangs) {
				t.Fatal("the profile's default preemption was not found")
			}
			w.run()
			high := makePod("high", 10, "")
			for range tc.cores - 1 {
				high.Spec.Containers = append(high.Spec.Containers, high.Spec.Containers[0])
			}
			w.create(high)
			if tc.waits {
				w.eventually("the Pod is told that it has no place", func() bool { return w.isUnschedulable("high") })
			} else {
				w.eventually("the Pod has its place", func() bool { return w.pod("high").Spec.NodeName != "" })
			}
			w.eventually("the others are gone", func() bool { return len(w.names()) == len(tc.left)+1 })
			if got := slices.DeleteFunc(w.names(), func(name string) bool { return name == "high" }); !slices.Equal(got, tc.left) {
				t.Errorf("%v are left, want %v", got, tc.left)
			}
		})
	}
}

// untakable are gangs of which no Pod may be deleted, though all may be victims. It counts how often that is asked.
type untakable struct {
	someGangs
	asked *atomic.Int32
}

func (u untakable) Take(*corev1.Pod) bool {
	u.asked.Add(1)
	return false
}

// TestAPreemptorWhoseVictimMayNotBeDeletedWaits: it would keep the scheduler busy until the victim's fate is known.
func TestAPreemptorWhoseVictimMayNotBeDeletedWaits(t *testing.T) {
	w := newWorld(t, makeNode("one", "1"), makePod("a", 0, "one"))
	var asked atomic.Int32
	if !GuardPreemption(w.ctx, w.inside, w.profile(), untakable{asked: &asked}) {
		t.Fatal("the profile's default preemption was not found")
	}
	w.run()
	began := time.Now()
	w.create(makePod("high", 10, ""))
	w.eventually("its victim was asked for twice", func() bool { return asked.Load() >= 2 })
	if passed := time.Since(began); passed < untakenPause {
		t.Errorf("the preemptor was tried again within %v", passed)
	}
	if w.pod("a") == nil {
		t.Error("the victim was deleted")
	}
}

// TestTheExecutorEvictsByItsHook: the default preemption deletes each victim by PreemptPod,
// with the Pod that preempts, and says that it runs until it has turned to the last one.
func TestTheExecutorEvictsByItsHook(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"), makePod("b", 0, "one"))
	var executor *preemption.Executor
	for _, plugin := range w.profile().PreEnqueuePlugins() {
		if d, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
			executor = d.Executor
		}
	}
	if executor == nil {
		t.Fatal("the profile's default preemption was not found")
	}
	type call struct {
		victim, by    string
		runs          bool // the executor says that the preemption runs
		victimIsThere bool
	}
	var mu sync.Mutex
	var calls []call
	preempt := executor.PreemptPod
	executor.PreemptPod = func(ctx context.Context, c preemption.Candidate, by preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) (bool, error) {
		seen := call{victim: victim.Name, runs: executor.IsPodRunningPreemption(by.UID()), victimIsThere: w.pod(victim.Name) != nil}
		for _, pod := range by.Pods() {
			seen.by += pod.Name
		}
		mu.Lock()
		// It may try again before it has heard of the end of a victim.
		if !slices.ContainsFunc(calls, func(c call) bool { return c.victim == seen.victim }) {
			calls = append(calls, seen)
		}
		mu.Unlock()
		return preempt(ctx, c, by, victim, plugin)
	}
	w.run()
	high := makePod("high", 10, "")
	high.Spec.Containers = append(high.Spec.Containers, high.Spec.Containers[0])
	w.create(high)
	w.eventually("both victims are gone", func() bool { return len(w.names()) == 1 })
	w.eventually("the preemption has ended", func() bool { return !executor.IsPodRunningPreemption(high.UID) })
	mu.Lock()
	defer mu.Unlock()
	slices.SortFunc(calls, func(x, y call) int { return int(x.victim[0]) - int(y.victim[0]) })
	want := []call{{"a", "high", true, true}, {"b", "high", true, true}}
	if !slices.Equal(calls, want) {
		t.Errorf("the hook saw %+v, want %+v", calls, want)
	}
}
