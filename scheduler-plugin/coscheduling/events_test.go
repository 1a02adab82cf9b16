// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// delayedTurn is a scheduling queue in which turns end late.
type delayedTurn struct {
	internalqueue.SchedulingQueue
	before func(uid types.UID)
}

func (q *delayedTurn) Done(uid types.UID) {
	q.before(uid)
	q.SchedulingQueue.Done(uid)
}

// TestNoEventIsLostInFlight: the victims of a gang are gone before the turn of its
// leader is over. Nothing else ever happens.
func TestNoEventIsLostInFlight(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 2, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-1")),
		makeGroup("high", 2), makeMembers("high", 2, wholeNode, ofPriority(10)))...)
	hasFailed := func() bool {
		return w.told("high").Message != ""
	}
	var once sync.Once
	w.queue = func(queue internalqueue.SchedulingQueue) internalqueue.SchedulingQueue {
		return &delayedTurn{queue, func(uid types.UID) {
			if strings.HasPrefix(string(uid), kube.BellName) && hasFailed() {
				once.Do(func() {
					w.eventually("both victims are gone", func() bool {
						return podsIn(w.sched.Cache.Dump().Nodes) == 0
					})
				})
			}
		}}
	}
	w.start()
	w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
}

func podsIn(nodes map[string]*framework.NodeInfo) int {
	n := 0
	for _, node := range nodes {
		n += len(node.Pods)
	}
	return n
}

// lacking is what a gang needs that has room for all but so many members of two
// cores.
func lacking(members int) line.Need {
	room := podEnded(makePod("member", wholeNode)).Room
	return line.Need{Members: members, Smallest: room, Least: room}
}

// TestEventsDuringACycle: what happens while a gang is planned, by the turn of
// any gang, is not lost to it, and what can't help costs nothing.
func TestEventsDuringACycle(t *testing.T) {
	tests := map[string]struct {
		need   line.Need // of the cycle that ends
		before line.Need // of the one before
		ended  int       // Pods that end during the cycle
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
			b.setGroup(group)
			b.add(makePod("gang-0", inGroup("gang")))
			fail := func(need line.Need) {
				b.fail(gangName, group.UID, shortfall{message: "no room", needed: 1, need: need}, time.Second, time.Second)
			}
			if tc.before.Members > 0 {
				b.turn()
				fail(tc.before)
				b.time = b.time.Add(time.Minute)
				b.awaken(gangName)
			}
			if b.turn().key != gangName {
				t.Fatal("the gang is not planned")
			}
			for range tc.ended {
				b.happened(framework.EventAssignedPodDelete, makePod("ended"), nil)
			}
			fail(tc.need)
			b.time = b.time.Add(2 * time.Second)
			if got := b.isNext(gangName); got != tc.want {
				t.Errorf("the gang is planned again: %v, want %v", got, tc.want)
			}
		})
	}
}
