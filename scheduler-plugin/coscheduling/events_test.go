// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// delayedReturn is a scheduling queue to which a leader returns late.
type delayedReturn struct {
	internalqueue.SchedulingQueue
	before func(pod *corev1.Pod)
}

func (q *delayedReturn) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	q.before(info.Pod)
	return q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
}

// TestNoEventIsLostInFlight: the victims of a gang are gone before its leader is
// back in the queue, and the leader was activated meanwhile, after which the
// queue asks for no more hints. Nothing else ever happens.
func TestNoEventIsLostInFlight(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 2, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-1")),
		makeGroup("high", 2), makeMembers("high", 2, wholeNode, ofPriority(10)))...)
	var once sync.Once
	w.queue = func(queue internalqueue.SchedulingQueue) internalqueue.SchedulingQueue {
		return &delayedReturn{queue, func(leader *corev1.Pod) {
			once.Do(func() {
				queue.Activate(klog.Background(), map[string]*corev1.Pod{leader.Namespace + "/" + leader.Name: leader})
				w.eventually("both victims are gone", func() bool {
					return podsIn(w.sched.Cache.Dump().Nodes) == 0
				})
			})
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
func lacking(members int) need {
	n := need{members: members, resources: newResources(nil)}
	n.smallest = n.resources.quantities(newRoom(makePod("member", wholeNode)).resources, 1)
	n.least = n.smallest
	return n
}

// TestEventsDuringACycle: what happens while a gang is planned, by the turn of
// any gang, is not lost to it, and what can't help costs nothing.
func TestEventsDuringACycle(t *testing.T) {
	tests := map[string]struct {
		need   need // of the cycle that ends
		before need // of the one before
		ended  int  // Pods that end during the cycle
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
			group, leader := makeGroup("gang", 1), makePod("gang-0", inGroup("gang"))
			b.setGroup(group)
			b.add(leader)
			fail := func(need need) {
				b.fail(gangName, group.UID, shortfall{message: "no room", needed: 1, need: need}, time.Second, time.Second)
			}
			if tc.before.members > 0 {
				b.next(leader)
				fail(tc.before)
				b.time = b.time.Add(time.Minute)
				b.awaken(gangName)
			}
			if _, what := b.next(leader); what != turnPlan {
				t.Fatalf("turn %v, want the gang to be planned", what)
			}
			for range tc.ended {
				b.happened(framework.EventAssignedPodDelete, makePod("ended"), nil)
			}
			fail(tc.need)
			b.time = b.time.Add(time.Minute)
			if got := b.due(gangName) != nil; got != tc.want {
				t.Errorf("the gang is planned again: %v, want %v", got, tc.want)
			}
		})
	}
}

// movedQueue is a scheduling queue that notes for whom it would ask for hints.
type movedQueue struct {
	internalqueue.SchedulingQueue
	pods  []*corev1.Pod
	asked [][]string
}

func (q *movedQueue) MoveAllToActiveOrBackoffQueue(_ klog.Logger, _ fwk.ClusterEvent, _, _ any, preCheck internalqueue.PreEnqueueCheck) {
	names := []string{}
	for _, pod := range q.pods {
		if preCheck(pod) {
			names = append(names, pod.Name)
		}
	}
	q.asked = append(q.asked, names)
}

// TestWhoHearsOfEvents: events cost nothing for those who wait for others to act,
// and none is lost to those for whom nobody acts.
func TestWhoHearsOfEvents(t *testing.T) {
	forget := func(types.NamespacedName, time.Duration) {}
	tracker := newTracker(func(string) bool { return true }, time.Now, forget, forget)
	queue := &movedQueue{pods: []*corev1.Pod{makePod("ordinary"), makePod("unseen-0", inGroup("unseen"))}}
	for _, group := range []string{"ahead", "behind"} {
		tracker.setGroup(makeGroup(group, 2))
		for _, object := range makeMembers(group, 2) {
			pod := object.(*corev1.Pod)
			tracker.setPod(pod)
			queue.pods = append(queue.pods, pod)
		}
	}
	tracker.setSynced()
	tracker.next(queue.pods[2]) // a cycle of the gang that is ahead

	begun := make(chan struct{})
	overheard := &eventQueue{SchedulingQueue: queue, tracker: tracker, begun: begun}
	event := func(check internalqueue.PreEnqueueCheck) {
		overheard.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, makePod("gone"), nil, check)
	}
	event(nil)
	if queue.asked != nil {
		t.Errorf("the queue hears of an event before scheduling begins: %v", queue.asked)
	}
	close(begun)
	overheard.begin(klog.Background())
	event(nil)
	event(func(pod *corev1.Pod) bool { return pod.Name != "ordinary" })
	hear := []string{"ordinary", "unseen-0", "behind-0"}
	want := [][]string{hear, hear, hear[1:]}
	if diff := cmp.Diff(want, queue.asked); diff != "" {
		t.Errorf("who is asked about at the begin and at two events (-want, +got):\n%s", diff)
	}
}
