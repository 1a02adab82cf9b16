// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// inspector is a plugin that looks at nodes, and counts how often. It rejects Pods whose
// label colour is that of the node.
type inspector struct{ looks atomic.Int64 }

func (*inspector) Name() string { return "Inspector" }

func (i *inspector) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	i.looks.Add(1)
	if colour := pod.Labels["colour"]; colour != "" && colour == node.Node().Labels["colour"] {
		return fwk.NewStatus(fwk.Unschedulable, "the node has the Pod's colour")
	}
	return nil
}

// TestGangsThatAreAlikeShareAPass: the plugins look at all nodes for the first of forty
// gangs, and for the others at those that have changed.
func TestGangsThatAreAlikeShareAPass(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const nodes, gangs = 100, 40
		look := &inspector{}
		w := newWorld(t, makeNodes("node", nodes, 8)...)
		w.others = []fwk.Plugin{look}
		for g := range gangs {
			name := fmt.Sprintf("gang%d", g)
			for _, object := range all(makeGroup(name, 2), makeMembers(name, 2)) {
				w.create(object)
			}
		}
		w.start()
		w.eventually("all are placed", func() bool { return w.placed("gang") == 2*gangs })
		// Each member once on its node, and for each gang the node of the one before.
		if n := look.looks.Load(); n < nodes+2*gangs || n > 2*nodes+4*gangs {
			t.Errorf("the plugins looked %d times at a node, for %d gangs on %d nodes", n, gangs, nodes)
		}
	})
}

// TestGangsThatAreRefusedShareAPass: ten nodes have room for a member each, and all others are tainted. Gangs of eleven and
// more members are refused without another look at the nodes, and each is told of the taint.
func TestGangsThatAreRefusedShareAPass(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const nodes, open, gangs = 100, 10, 20
		look := &inspector{}
		objects := all(makeNodes("node", nodes, 1))
		for _, object := range objects[open:] {
			object.(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoSchedule}}
		}
		w := newWorld(t, objects...)
		w.others = []fwk.Plugin{look}
		for g := range gangs {
			name, size := fmt.Sprintf("gang%d", g), open+1+g
			for _, object := range all(makeGroup(name, int32(size)), makeMembers(name, size)) {
				w.create(object)
			}
		}
		w.start()
		for g := range gangs {
			got := w.condition(fmt.Sprintf("gang%d", g), metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
			if want := "10 of 100 nodes admit them: 90 node(s) had untolerated taint(s)"; !strings.Contains(got.Message, want) {
				t.Errorf("message %q, want it to contain %q", got.Message, want)
			}
		}
		if n := look.looks.Load(); n > 2*open {
			t.Errorf("the plugins looked %d times at one of %d nodes, for %d gangs", n, open, gangs)
		}
	})
}

// TestGangsBehindAReservationShareAPass: two of a hundred nodes are reserved for a gang that waits. For each of the gangs
// behind it the plugins look only at these nodes and at those that have changed.
func TestGangsBehindAReservationShareAPass(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const nodes, gangs = 100, 20
		look := &inspector{}
		objects := all(makeNodes("big", 2, 16), makeNodes("node", nodes-2, 1),
			bornAt(1, makeGroup("first", 2)), makeMembers("first", 2, plusCores("15")),
			makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("big-0"), plusCores("7")))
		w := newWorld(t, objects...)
		w.others = []fwk.Plugin{look}
		w.start()
		w.eventually("resources are reserved for the first gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		before := look.looks.Load()
		for g := range gangs {
			name := fmt.Sprintf("gang%d", g)
			for _, object := range all(bornAt(5, makeGroup(name, 2)), makeMembers(name, 2)) {
				w.create(object)
			}
		}
		w.eventually("the others are placed", func() bool { return w.placed("gang") == 2*gangs })
		if n := look.looks.Load() - before; n > nodes+8*gangs {
			t.Errorf("the plugins looked %d times at a node, for %d gangs on %d nodes", n, gangs, nodes)
		}
	})
}

// TestASharedPassIsNotBelieved: members that are alike but for their labels may be treated
// otherwise by a plugin. A gang that is kept out of where the pass of another would put it
// is placed elsewhere, and one that is kept out of everywhere is told why.
func TestASharedPassIsNotBelieved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("red", 1, 8, "colour=red"), makeNodes("blue", 1, 4, "colour=blue"), makeNodes("green", 1, 16, "colour=green"))...)
		w.others = []fwk.Plugin{&inspector{}}
		w.start()
		create := func(name string, size int, colour string) {
			together := func(s *schedulingv1alpha1.PodGroupSpec) {
				s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "colour", Mode: schedulingv1alpha1.TopologyRequired}}
			}
			coloured := func(p *schedulertesting.PodWrapper) { p.Label("colour", colour) }
			for _, object := range all(makeGroup(name, int32(size), together), makeMembers(name, size, coloured)) {
				w.create(object)
			}
		}
		place := func(name string, size int, colour, want string) {
			t.Helper()
			create(name, size, colour)
			w.eventually(name+" is placed", func() bool { return w.placed(name) == size })
			if node := w.nodeOf()[name+"-0"]; node != want {
				t.Errorf("%s is on %s, want %s", name, node, want)
			}
		}
		place("first", 6, "white", "red-0")   // the tightest that holds it
		place("second", 3, "blue", "green-0") // blue-0 would be the tightest
		place("third", 12, "white", "green-0")
		create("fourth", 4, "blue")
		got := w.condition("fourth", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "1 the node has the Pod's colour"; !strings.Contains(got.Message, want) {
			t.Errorf("message %q, want it to say %q", got.Message, want)
		}
	})
}

// TestAPassThatIsOutdatedRefusesNobody: members of three sizes fit only in one of the ways that the planner tries. One kind of
// them must not be in a zone with a database. The database starts on a full node after the plugins have accepted the other nodes
// of its zone for gangs like this one. With these nodes the planner finds no way, but they are not needed.
func TestAPassThatIsOutdatedRefusesNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		node := func(name string, tenths int64, zone string) {
			node := makeNodes(name, 1, 1, "zone="+zone)[0].(*corev1.Node)
			cores := *resource.NewMilliQuantity(tenths*100, resource.DecimalSI)
			node.Status.Capacity[corev1.ResourceCPU], node.Status.Allocatable[corev1.ResourceCPU] = cores, cores
			w.create(node)
		}
		for i, tenths := range []int64{33, 79, 36, 82, 44, 51} {
			zone := fmt.Sprint("zone", i)
			if i == 1 || i == 2 || i == 5 {
				zone = "blue"
			}
			node(fmt.Sprint("node", i), tenths, zone)
		}
		node("full", 10, "blue")
		node("low", 640, "low")
		w.create(makePod("low", onNode("low-0"), plusCores("63"), ofPriority(1)))
		w.start()
		create := func(group string, counts ...int) (names []string) {
			for kind, tenths := range []int64{38, 27, 21} {
				for i := range counts[kind] {
					names = append(names, fmt.Sprintf("%s-%d-%d", group, kind, i))
					w.create(makePod(names[len(names)-1], inGroup(group), ofPriority(10), func(p *schedulertesting.PodWrapper) {
						p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(tenths*100, resource.DecimalSI)}
						if group == "large" {
							p.PreemptionPolicy(corev1.PreemptNever)
						}
						if kind == 1 {
							p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
								RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("zone", "app=db")}}}
						}
					}))
				}
			}
			w.create(makeGroup(group, int32(len(names))))
			return names
		}
		large := create("large", 20, 20, 20)
		w.condition("large", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		for _, name := range large {
			w.finish(name)
		}
		w.create(makePod("db", onNode("full-0"), func(p *schedulertesting.PodWrapper) { p.Label("app", "db") }))
		w.eventually("the scheduler knows the database", func() bool { return len(w.sched.Cache.Dump().Nodes["full-0"].GetPods()) == 1 })
		create("gang", 3, 4, 3)
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 10 })
		if evicted := w.victims(); len(evicted) > 0 {
			t.Errorf("%v were evicted, although there is room for the gang", evicted)
		}
	})
}

// TestASharedPassSeesNodesChange: a node that is cordoned takes nobody, and one that is
// uncordoned, or new, takes gangs that are like those before.
func TestASharedPassSeesNodesChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.start()
		cordon := func(name string, is bool) {
			t.Helper()
			node, err := w.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			node.Spec.Unschedulable = is
			if _, err := w.kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.eventually("the scheduler has seen it", func() bool { return w.sched.Cache.Dump().Nodes[name].Node().Spec.Unschedulable == is })
		}
		place := func(name, where string) {
			t.Helper()
			for _, object := range all(makeGroup(name, 2), makeMembers(name, 2)) {
				w.create(object)
			}
			w.eventually(name+" is placed", func() bool { return w.placed(name) == 2 })
			for _, pod := range []string{name + "-0", name + "-1"} {
				if node := w.nodeOf()[pod]; where != "" && node != where {
					t.Errorf("%s is on %s, want %s", pod, node, where)
				}
			}
		}
		place("first", "")
		cordon("node-0", true)
		place("second", "node-1")
		cordon("node-1", true)
		cordon("node-0", false)
		place("third", "node-0")
		cordon("node-0", true)
		w.create(makeNodes("new", 1, 8)[0])
		place("fourth", "new-0")
	})
}

// TestGangsThatAreAlikeKeepTheirPreferences: all prefer zone a, and a little zone b. Each fills
// a node of zone a. But for that only a node of zone b changes, which is the emptiest.
func TestGangsThatAreAlikeKeepTheirPreferences(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		objects := all(makeNodes("a", 4, 4, "zone=a"), makeNodes("b", 2, 64, "zone=b"))
		for n := range 4 {
			objects = all(objects, makePod(fmt.Sprint("half-", n), plusCores("1"), onNode(fmt.Sprint("a-", n))))
		}
		w := newWorld(t, objects...)
		w.start()
		prefer := func(p *schedulertesting.PodWrapper) {
			term := func(weight int32, zone string) corev1.PreferredSchedulingTerm {
				return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}
			}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term(100, "a"), term(1, "b")}}}
		}
		for n := range 4 {
			name := fmt.Sprint("gang-", n)
			w.create(makePod(fmt.Sprint("ordinary-", n), onNode("b-0")))
			w.eventually("the node of zone b has changed", func() bool { return len(w.sched.Cache.Dump().Nodes["b-0"].Pods) == n+1 })
			w.create(makeGroup(name, 2))
			for _, member := range makeMembers(name, 2, prefer) {
				w.create(member)
			}
			w.eventually(name+" is placed", func() bool { return w.placed(name) == 2 })
			for _, member := range []string{name + "-0", name + "-1"} {
				if node := w.nodeOf()[member]; !strings.HasPrefix(node, "a-") {
					t.Errorf("%s is on %s, though zone a has room", member, node)
				}
			}
		}
	})
}

// TestGangsThatAreAlikeGoWhereARunningPodWantsThem: the Pod would like members of gangs beside itself, on a node with room for all of them.
func TestGangsThatAreAlikeGoWhereARunningPodWantsThem(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		host := makePod("host", onNode("node-2"), func(p *schedulertesting.PodWrapper) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 100, PodAffinityTerm: term(corev1.LabelHostname, "app=guest")}}}}
		})
		w := newWorld(t, all(makeNodes("node", 3, 16), host)...)
		w.start()
		for _, name := range []string{"first", "second", "third"} {
			for _, object := range all(makeGroup(name, 2), makeMembers(name, 2, func(p *schedulertesting.PodWrapper) { p.Label("app", "guest") })) {
				w.create(object)
			}
			w.eventually(name+" is placed", func() bool { return w.placed(name) == 2 })
			if node := w.nodeOf()[name+"-0"]; node != "node-2" {
				t.Errorf("%s is on %s, though node-2 has room", name, node)
			}
		}
	})
}
