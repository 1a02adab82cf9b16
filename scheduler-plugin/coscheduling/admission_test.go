// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// asksFor is a group of Volcano's with minResources of cores.
func asksFor(name string, minMember int64, cores string) *unstructured.Unstructured {
	group := makeVolcanoGroup(name, minMember)
	group.Object["spec"].(map[string]any)["minResources"] = map[string]any{"cpu": cores}
	return group
}

// conditionOf is the message of a condition of a group of Volcano's, with its reason.
func (w *world) messageOf(name, condition string) string {
	w.t.Helper()
	group, err := w.foreign.Resource(dialect.Volcano.Resource()).Namespace(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	read := dialect.FromVolcano(nil)(group)
	for _, c := range read.Conditions {
		if c.Type == condition && c.Status == metav1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// TestAVolcanoGroupIsLetInWhenThereIsRoom, if the configuration says so: until then it is pending, and told why. What
// its tool then creates is placed, and goes on to be let in when Pods are lost.
func TestAVolcanoGroupIsLetInWhenThereIsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("in-the-way", plusCores("1"), onNode("node-0")))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","dialects":{"volcano":{"mode":"On","admit":"WhenRoom"}}}`
		w.serveDialect(dialect.Volcano, asksFor("large", 2, "3"), asksFor("small", 1, "2"), makeVolcanoGroup("modest", 1))
		w.start()
		phase := func(name string) string { return w.phaseOf(dialect.Volcano, name) }
		w.eventually("it waits", func() bool { return phase("large") == dialect.PhasePending })
		w.eventually("others don't wait for it", func() bool {
			return phase("small") == dialect.PhaseInqueue && phase("modest") == dialect.PhaseInqueue
		})
		if got := w.messageOf("large", "Unschedulable"); !strings.HasPrefix(got, "NotEnoughResources: its Pods may be created when the 3 cpu") {
			t.Errorf("it is told %q", got)
		}
		w.eventually("an event says so", func() bool {
			return w.recorded("Unschedulable 2/0 tasks in gang unschedulable: its Pods may be created when") == 1
		})
		w.create(makePod("small-0", plusCores("1"), ofVolcano("small")))
		w.eventually("the small one runs", func() bool { return phase("small") == dialect.PhaseRunning })
		w.deletePod("in-the-way")
		w.deletePod("small-0")
		w.eventually("there is room", func() bool { return phase("large") == dialect.PhaseInqueue })
		w.create(makePod("large-0", ofVolcano("large")))
		w.create(makePod("large-1", ofVolcano("large")))
		w.eventually("it runs", func() bool { return phase("large") == dialect.PhaseRunning })
		w.create(makePod("in-the-way-again", plusCores("1"), onNode("node-0")))
		w.deletePod("large-1")
		w.eventually("who was let in stays in", func() bool { return phase("large") == dialect.PhaseInqueue })
		if bound := w.bound(); !slices.Contains(bound, "large-0") || !slices.Contains(bound, "large-1") {
			t.Errorf("bound are %v", bound)
		}
	})
}

// TestPodsThatDontWaitAreNotKeptFromNodes: some tools create them whatever the phase is.
func TestPodsThatDontWaitAreNotKeptFromNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 4)...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","dialects":{"volcano":{"mode":"On","admit":"WhenRoom"}}}`
		w.serveDialect(dialect.Volcano, asksFor("gang", 2, "100"))
		w.start()
		w.eventually("it waits", func() bool { return w.phaseOf(dialect.Volcano, "gang") == dialect.PhasePending })
		w.create(makePod("gang-0", ofVolcano("gang")))
		w.create(makePod("gang-1", ofVolcano("gang")))
		w.eventually("they are bound", func() bool { return len(w.bound()) == 2 })
		w.eventually("the group runs", func() bool { return w.phaseOf(dialect.Volcano, "gang") == dialect.PhaseRunning })
	})
}

// TestHowMuchRoomACluster has: cordoned nodes have none, and what is kept on them does not count either.
func TestHowMuchRoomAClusterHas(t *testing.T) {
	node := func(name string, cordoned bool, cores string) *framework.NodeInfo {
		info := framework.NewNodeInfo()
		info.SetNode(schedulertesting.MakeNode().Name(name).Unschedulable(cordoned).
			Capacity(map[corev1.ResourceName]string{"cpu": cores, "pods": "10", "example.com/gpu": "2"}).Obj())
		return info
	}
	member := func(name, node string) *framework.PodInfo {
		info, err := framework.NewPodInfo(makePod(name, onNode(node), plusCores("1")))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	nodes := map[string]*framework.NodeInfo{"a": node("a", false, "8"), "b": node("b", false, "4"), "c": node("c", true, "8"), "gone": framework.NewNodeInfo()}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name].AddPodInfo(member("runs-on-"+name, name))
	}
	key := dialect.Key{Namespace: "ns", Name: "gang"}
	kept := room.NewProvision(room.Gang{Rank: line.Rank{Key: key}}, []*framework.PodInfo{member("x", "a"), member("y", "a"), member("z", "c"), member("w", "gone")}, time.Time{})
	got := clusterOf(nodes, []room.Claim{kept})
	want := provision.Amounts{"cpu": 12000, "pods": 20, "example.com/gpu": 4}
	if !got.All.Equal(want) {
		t.Errorf("all is %v, want %v", got.All, want)
	}
	if want := (provision.Amounts{"cpu": 8000, "pods": 18, "example.com/gpu": 4}); !got.Free.Equal(want) {
		t.Errorf("free is %v, want %v", got.Free, want)
	}
	if diff := cmp.Diff(4000, int(got.Kept[key]["cpu"])); diff != "" || len(got.Kept) != 1 || got.Kept[key]["pods"] != 2 {
		t.Errorf("kept is %v (-want, +got)\n%s", got.Kept, diff)
	}
}
