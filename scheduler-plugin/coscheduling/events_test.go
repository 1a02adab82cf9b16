// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// meddler is a plugin that does something once in the middle of a cycle.
type meddler struct{ once func() }

func (meddler) Name() string { return "Meddler" }

func (m meddler) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	m.once()
	return nil, nil
}

func (meddler) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// TestNoEventIsLostInATurn: a gang is planned on a full node, which is empty before its cycle
// is over. Nothing else ever happens.
func TestNoEventIsLostInATurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode),
			makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.others = []fwk.Plugin{meddler{sync.OnceFunc(func() {
			w.deletePod("running")
			w.eventually("the scheduler has seen that the node is empty", func() bool { return podsIn(w.sched.Cache.Dump().Nodes) == 0 })
		})}}
		w.start()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	})
}

func podsIn(nodes map[string]*framework.NodeInfo) int {
	n := 0
	for _, node := range nodes {
		n += len(node.Pods)
	}
	return n
}

// lacking is what a gang needs that has room for all but some members of two
// cores.
func lacking(members int) queue.Need {
	room := place.PodEnded(makePod("member", wholeNode)).Room
	return queue.Need{Members: members, Smallest: room, Least: room}
}

// bench is gangs without a scheduler, with a clock in the test's hands.
type bench struct {
	// store has the Pods that are there; nil if all are.
	store cache.Store
	*gangs.Gangs
	gangs.Reader
	gangs.Cycles
	links *dialect.Links
	time  time.Time
}

// newBench is a bench on which some dialects are on, beside Lockstep's own.
func newBench(on ...dialect.Dialect) *bench {
	b, links := &bench{time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, &dialect.Links{}
	for _, d := range on {
		links.TurnOn(d)
	}
	b.Gangs = gangs.New(gangs.Config{
		Rules: gangs.Rules{
			Links:      links,
			Serves:     func(name string) bool { return name == testScheduler },
			ClassValue: func(string) (int32, bool) { return 0, false },
			ClassKey:   place.ClassKey,
		},
		Now: func() time.Time { return b.time },
		Current: func(pod *corev1.Pod) *corev1.Pod {
			if b.store == nil {
				return pod
			}
			return inStore(b.store, pod)
		},
	})
	b.links = links
	b.Reader, b.Cycles = gangs.Reader{Of: b.Gangs}, gangs.Cycles{Of: b.Gangs}
	b.SetSynced()
	return b
}

// SetGroup makes a PodGroup known, new or changed.
func (b *bench) SetGroup(group *schedulingv1alpha1.PodGroup) {
	b.Gangs.SetGroup(dialect.FromOwn(group))
}

// cycle begins the cycle of the gang that is next, which has no name if there is none.
func (b *bench) cycle() gangs.View {
	view, _ := b.Begin(math.MinInt32, b.time)
	return view
}

// fail ends a cycle without a place.
func (b *bench) fail(key dialect.Key, uid types.UID, why queue.Refusal, initial, longest time.Duration) {
	b.Refuse(key, uid, why, queue.Terms{Initial: initial, Longest: longest})
}

// TestEventsDuringACycle: what happens while a gang is planned, by the cycle of
// any gang, is not lost to it, and what can't help costs nothing.
func TestEventsDuringACycle(t *testing.T) {
	tests := map[string]struct {
		need   queue.Need // of the cycle that ends
		before queue.Need // of the one before
		ended  int        // Pods that end during the cycle
		want   bool
	}{
		"nothing":                               {},
		"a Pod ends in the first cycle":         {ended: 1, want: true},
		"too few Pods end":                      {before: lacking(3), need: lacking(3), ended: 2},
		"enough Pods end":                       {before: lacking(3), need: lacking(3), ended: 3, want: true},
		"enough Pods end, as is known only now": {before: lacking(3), need: lacking(2), ended: 2, want: true},
		"a Pod ends, and it is not known any more what is missing": {before: lacking(3), ended: 1, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			group := makeGroup("gang", 1)
			b.SetGroup(group)
			b.SetPod(makePod("gang-0", inGroup("gang")))
			fail := func(need queue.Need) {
				b.fail(gangName, group.UID, queue.Refusal{Message: "no room", Need: need}, time.Second, time.Second)
			}
			if tc.before.Members > 0 {
				b.cycle()
				fail(tc.before)
				b.time = b.time.Add(time.Minute)
				b.Wake(gangName)
			}
			if b.cycle().Key != gangName {
				t.Fatal("the gang is not planned")
			}
			for range tc.ended {
				happened(b.Gangs, framework.EventAssignedPodDelete, makePod("ended"), nil)
			}
			fail(tc.need)
			b.time = b.time.Add(2 * time.Second)
			if _, got, _ := b.Next(); got != tc.want {
				t.Errorf("the gang is planned again: %v, want %v", got, tc.want)
			}
		})
	}
}
