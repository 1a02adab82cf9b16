// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// slow is a plugin that thinks about each member of a group for a while, as a slow extender does.
type slow struct {
	group  string
	thinks time.Duration
}

func (slow) Name() string { return "Slow" }

func (s slow) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if pod.Labels[schedulingv1alpha1.LabelPodGroup] == s.group {
		time.Sleep(s.thinks)
	}
	return nil
}

// TestAGangThatTakesTooLongToPlanHoldsNobodyUp: each of its members is of another kind, so
// each is looked at by itself.
func TestAGangThatTakesTooLongToPlanHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var different []apiruntime.Object
		for i := range 50 {
			different = append(different, makePod(fmt.Sprintf("different-%d", i), inGroup("different"),
				func(w *schedulertesting.PodWrapper) {
					w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprintf("%dm", i+1)})
				}))
		}
		w := newWorld(t, all(makeNodes("node", 2, 100), bornAt(0, makeGroup("different", 50)), different)...)
		w.others = []fwk.Plugin{slow{"different", 20 * time.Millisecond}}
		// The members that differ take twice as long, and those that don't have it to themselves, on a busy machine too.
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","cycleTimeout":"500ms"}`
		w.start()
		got := w.condition("different", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "the members are of 50 kinds"; !strings.Contains(got.Message, want) || !strings.Contains(got.Message, "given up") {
			t.Errorf("message %q, want one with %q, and that it was given up", got.Message, want)
		}
		w.create(bornAt(1, makeGroup("alike", 3)))
		for _, member := range makeMembers("alike", 3) {
			w.create(member)
		}
		w.eventually("a gang that came later is placed", func() bool { return w.placed("alike") == 3 })
		if n := w.placed("different"); n != 0 {
			t.Errorf("%d members are placed of the gang that was given up", n)
		}
	})
}

// TestAGangOfTooManyResourcesIsRefused: the planner has an amount of each resource for each node, so a gang that names
// thousands would have it use up the memory.
func TestAGangOfTooManyResourcesIsRefused(t *testing.T) {
	for resources, want := range map[int]string{64: "0 of the 2 members that are needed", 65: "more than 64 different extended resources"} {
		t.Run(fmt.Sprint(resources), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				naming := func(from, to int) podOption {
					return func(w *schedulertesting.PodWrapper) {
						for i := from; i < to; i++ {
							w.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
						}
					}
				}
				w := newWorld(t, all(makeNodes("node", 2, 100), makeGroup("gang", 2),
					makePod("a", inGroup("gang"), naming(0, 40)), makePod("b", inGroup("gang"), naming(40, resources)))...)
				w.start()
				got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q, want one with %q", got.Message, want)
				}
				w.create(makeGroup("other", 1))
				w.create(makePod("other-0", inGroup("other")))
				w.eventually("another gang is placed", func() bool { return w.placed("other") == 1 })
			})
		})
	}
}

// TestAllThatAGangTriesInItsTurnEndsByOneDeadline: a plugin that is slow refuses one of its members at the end, on nodes that
// are free, and on those from which Pods would be preempted or that end by themselves.
func TestAllThatAGangTriesInItsTurnEndsByOneDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const cycleTimeout, step = time.Second, 50 * time.Millisecond
		w := newWorld(t)
		w.args = fmt.Sprintf(`{"cycleTimeout":%q}`, cycleTimeout)
		w.others = []fwk.Plugin{&ledger{refuses: fwk.NewStatus(fwk.Unschedulable, "no device is left"), thinks: step, has: map[string]bool{}}}
		w.start()()
		for i, node := range makeNodes("node", 40, 1) {
			w.sched.Cache.AddNode(klog.Background(), node.(*corev1.Node))
			if i < 4 {
				continue
			}
			if err := w.sched.Cache.AddPod(klog.Background(), makePod(fmt.Sprintf("low-%d", i), onNode(node.(*corev1.Node).Name))); err != nil {
				t.Fatal(err)
			}
		}
		view := viewOf(makeGroup("gang", 3), makeMembers("gang", 2))
		view.Placed, view.Nodes = podgroup.Tally{Total: 1}, []string{"gone"}
		view.Rank.Priority, view.MayPreempt, view.First, view.Since = 10, true, true, time.Now().Add(-time.Hour)
		if !view.Broken() {
			t.Fatal("the gang has what it needs")
		}
		began := time.Now()
		out, err := w.engine().plan(t.Context(), &view, false)
		if err != nil || len(out.Placements) > 0 {
			t.Fatalf("the outcome is %+v, %v", out, err)
		}
		if took := time.Since(began); took > cycleTimeout*5/4+step {
			t.Errorf("the cycle took %s, and may take %s", took, cycleTimeout*5/4)
		} else if took < cycleTimeout {
			t.Errorf("the cycle took %s, though there is more to try", took)
		}
	})
}

// sluggish is an extender that thinks about each Pod for a while, and rejects one on a node. It gives no answer while it is down.
type sluggish struct {
	fwk.Extender
	thinks   time.Duration
	pod, off string
	down     *atomic.Bool
}

func (sluggish) Name() string                  { return "sluggish" }
func (sluggish) IsFilter() bool                { return true }
func (sluggish) IsBinder() bool                { return false }
func (sluggish) IsIgnorable() bool             { return false }
func (sluggish) IsInterested(*corev1.Pod) bool { return true }
func (s sluggish) Filter(pod *corev1.Pod, nodes []fwk.NodeInfo) (passed []fwk.NodeInfo, failed, unresolvable extenderv1.FailedNodesMap, err error) {
	time.Sleep(s.thinks)
	if s.down != nil && s.down.Load() {
		return nil, nil, nil, errors.New("connection refused")
	}
	if pod.Name == s.pod && nodes[0].Node().Name == s.off {
		return nil, extenderv1.FailedNodesMap{s.off: "it is not licensed"}, nil, nil
	}
	return nodes, nil, nil, nil
}

// TestAGangIsPlacedSoonAfterAnExtenderIsUpAgain: it runs, so it has no right to a reservation, and nothing else happens.
func TestAGangIsPlacedSoonAfterAnExtenderIsUpAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 8), makeGroup("gang", 2), makeMembers("gang", 2))...)
		lead := w.standBy()
		var down atomic.Bool
		w.sched.Extenders = append(w.sched.Extenders, sluggish{down: &down})
		lead()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
		down.Store(true)
		w.create(makePod("gang-2", inGroup("gang")))
		w.eventually("planning fails", func() bool { return w.failures("gang") > 0 })
		down.Store(false)
		time.Sleep(61 * time.Second)
		if w.placed("gang") != 3 {
			t.Errorf("a minute later the third member waits: %s", w.told("gang").Message)
		}
	})
}

// TestAGangKeepsItsReservationWhileAnExtenderIsDown for a moment, just when its nodes are free.
func TestAGangKeepsItsReservationWhileAnExtenderIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)))...)
		lead := w.standBy()
		var down atomic.Bool
		w.sched.Extenders = append(w.sched.Extenders, sluggish{down: &down})
		lead()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		down.Store(true)
		w.deletePod("one-0")
		w.eventually("planning fails", func() bool { return strings.HasPrefix(w.told("big").Message, "planning failed") })
		down.Store(false)
		w.create(bornAt(5, makeGroup("long", 1, runsFor(72_000))))
		w.create(makePod("long-0", inGroup("long")))
		time.Sleep(61 * time.Second)
		if w.placed("big") != 2 {
			t.Errorf("a gang behind has its nodes, or it is not tried again: %s", w.told("big").Message)
		}
	})
}

// TestAnExtenderIsAskedAboutManyMembersAtATime: asked about one after the other, it would take longer than a cycle may.
// What it says of a member counts.
func TestAnExtenderIsAskedAboutManyMembersAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const members = 110
		w := newWorld(t, all(makeNodes("node", 2, members), makeGroup("gang", members), makeMembers("gang", members))...)
		w.verbosity, w.args = 0, `{"cycleTimeout":"250ms"}`
		lead := w.standBy()
		w.sched.Extenders = append(w.sched.Extenders, sluggish{thinks: 5 * time.Millisecond, pod: "gang-7", off: "node-0"})
		lead()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == members })
		if node := w.nodeOf()["gang-7"]; node != "node-1" {
			t.Errorf("gang-7 is on %s, where the extender does not want it", node)
		}
	})
}
