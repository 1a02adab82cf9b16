// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// cycles is how many gang cycles there have been.
func (w *world) cycles() int {
	w.t.Helper()
	n := 0
	for _, result := range []status.Result{status.Placed, status.Unschedulable, status.Failed} {
		value, err := testutil.GetCounterMetricValue(w.engine().metrics.Cycles.WithLabelValues(string(result)))
		if err != nil {
			w.t.Fatal(err)
		}
		n += int(value)
	}
	return n
}

// quiet says whether no gang is about to be planned.
func (w *world) quiet() bool {
	_, due, _ := w.engine().cycles.Next()
	return !due
}

// TestFiveHundredWaitingGangsCostLittle: on a full cluster, each of 500 gangs of
// eight members is planned once. Ten thousand events that can't help have none of
// them planned again; one that may help, each once.
func TestFiveHundredWaitingGangsCostLittle(t *testing.T) {
	const gangs, events = 500, 10_000
	b := newBench()
	for g := range gangs {
		group := makeGroup(fmt.Sprintf("gang%d", g), 8)
		b.SetGroup(group)
		for _, member := range makeMembers(group.Name, 8) {
			b.SetPod(member.(*corev1.Pod))
		}
	}
	plan := func() (cycles int) {
		for view := b.cycle(); view.Group != nil; view = b.cycle() {
			cycles++
			b.fail(view.Key, view.Group.UID, queue.Refusal{Message: "no room", Need: lacking(8)}, time.Second, 10*time.Second)
		}
		return cycles
	}
	if n := plan(); n != gangs {
		t.Fatalf("%d cycles for %d new gangs", n, gangs)
	}
	b.time = b.time.Add(20 * time.Second)

	small := makeNodes("small", 1, 1)[0].(*corev1.Node)
	start := time.Now()
	for range events {
		happened(b.Gangs, fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel}, small, small)
		happened(b.Gangs, framework.EventAssignedPodAdd, nil, makePod("placed"))
	}
	t.Logf("an event that can't help costs %v", time.Since(start)/(2*events))
	if n := plan(); n != 0 {
		t.Errorf("%d cycles for events that can't help", n)
	}
	large := makeNodes("large", 1, 8)[0].(*corev1.Node)
	happened(b.Gangs, fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, large)
	if n := plan(); n != gangs {
		t.Errorf("%d cycles for an event that may help each of %d gangs", n, gangs)
	}
}

// TestWaitingGangsAreNotPlannedInVain is the same on a scheduler. Each member is
// marked for autoscalers once, however often its gang is planned.
func TestWaitingGangsAreNotPlannedInVain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const gangs, beats = 40, 20
		objects := all(makeNodes("node", 1, 1, "disk=ssd"), makePod("full", onNode("node-0")))
		for g := range gangs {
			name := fmt.Sprintf("gang%d", g)
			objects = all(objects, makeGroup(name, 1), makeMembers(name, 1, selecting("disk", "ssd")))
		}
		w := newWorld(t, objects...)
		w.start()
		w.eventually("all members are marked", func() bool { return w.marked("gang") == gangs })
		w.eventually("nothing is left to be planned", w.quiet)

		before := w.cycles()
		for i := range beats {
			beat := fmt.Sprint(i)
			w.changeNode("node-0", func(node *corev1.Node) {
				node.Annotations = map[string]string{"beat": beat}
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: beat}}
			})
			w.create(makePod("new"+beat, onNode("node-0")))
			w.eventually("the scheduler has seen the heartbeat and the Pod", func() bool {
				node := w.sched.Cache.Dump().Nodes["node-0"]
				return node.Node().Annotations["beat"] == beat && len(node.Pods) == i+2
			})
		}
		if n := w.cycles() - before; n != 0 {
			t.Errorf("%d cycles for events that can't help", n)
		}

		w.create(makeNodes("other", 1, 1)[0]) // which is large enough, but lacks the label
		w.eventually("the first gang has been planned again", func() bool { return w.cycles() > before && w.quiet() })
		if n := w.cycles() - before; n > 1 {
			t.Errorf("%d cycles for an event that may help each of %d gangs, which are alike", n, gangs)
		}
		// A report may write a mark again before the scheduler has seen it. That says the same.
		marks := sets.New[string]()
		for _, action := range w.kube.Actions() {
			if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetResource() == podResource {
				marks.Insert(patch.GetName() + string(patch.GetPatch()))
			}
		}
		if n := len(marks); n != gangs {
			t.Errorf("members got %d marks, want %d: one each", n, gangs)
		}
	})
}

// TestKubeSchedulersOwnMetricsStayRight: an attempt that fails is one attempt, of
// the gang; each member that is bound is one that succeeds.
func TestKubeSchedulersOwnMetricsStayRight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		schedulermetrics.Register()
		attempts := func(result string) float64 {
			t.Helper()
			return gathered(t, "scheduler_schedule_attempts_total", map[string]string{"profile": testScheduler, "result": result})
		}
		// The metrics are those of the process: only what is added to them counts.
		w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("gang", 3), makeMembers("gang", 3))...)
		scheduled, unschedulable := attempts("scheduled"), attempts("unschedulable")
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("the attempt is counted", func() bool { return attempts("unschedulable") > unschedulable })
		w.create(makeNodes("new", 1, 2)[0])
		w.eventually("all are bound, and counted", func() bool {
			return w.placed("gang") == 3 && attempts("scheduled") >= scheduled+3
		})
	})
}

// gathered is the value of a metric that the scheduler serves, 0 if it has none
// with these labels.
func gathered(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if testutil.LabelsMatch(metric, labels) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// TestWaitingGangsCostLittle: gangs that lack much are not planned for each Pod
// that ends.
func TestWaitingGangsCostLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 20), makeGroup("runs", 20), makeMembers("runs", 20, onNode("node-0")),
			makeGroup("gang", 20), makeMembers("gang", 20))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		for i := range 20 {
			w.deletePod(makeMembers("runs", 20)[i].(*corev1.Pod).Name)
		}
		w.eventually("the gang is placed when all have ended", func() bool { return w.placed("gang") == 20 })
	})
}

// TestAGangThatMayPreemptIsNotPlannedForEachPodThatEnds has Pods of low priority come and go, which the gang could take,
// while others of a higher priority keep it out.
func TestAGangThatMayPreemptIsNotPlannedForEachPodThatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), makePod("high-0", onNode("node-0"), ofPriority(100)), makePod("high-1", onNode("node-0"), ofPriority(100)),
			makePod("low", onNode("node-1")), makePod("low-0", onNode("node-1")), makeGroup("gang", 4), makeMembers("gang", 4, ofPriority(10)))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("nothing is left to be planned", w.quiet)
		before := w.cycles()
		for i := range 10 {
			w.deletePod(fmt.Sprintf("low-%d", i))
			w.create(makePod(fmt.Sprintf("low-%d", i+1), onNode("node-1")))
			time.Sleep(time.Second)
		}
		if more := w.cycles() - before; more > 0 {
			t.Errorf("the gang was planned %d times in vain", more)
		}
		w.deletePod("high-0")
		w.deletePod("high-1")
		w.eventually("the gang has its place", func() bool { return w.placed("gang") == 4 })
	})
}
