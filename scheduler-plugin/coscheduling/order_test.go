// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestGangAndOrdinaryPodTakeTheirTurnsByPriority: a gang and an ordinary Pod of
// priority 10 are in the queue, which knows the priority of Pods only. The cycle is
// by that of the gang.
func TestGangAndOrdinaryPodTakeTheirTurnsByPriority(t *testing.T) {
	tests := map[string]struct {
		members   podOption
		class     string
		placed    bool // a third member, of priority 11
		wantFirst bool
	}{
		"a gang whose members outrank the Pod":                                    {members: ofPriority(11), wantFirst: true},
		"a gang whose class outranks the Pod, though not its members":             {members: ofPriority(0), class: "high"},
		"a gang whose placed member outranks the Pod, though not those that wait": {members: ofPriority(0), placed: true, wantFirst: true},
		"a gang whose members outrank the Pod, though not its class":              {members: ofPriority(11), class: "low"},
		"a gang that does not outrank the Pod":                                    {members: ofPriority(9)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("ordinary", ofPriority(10)),
					priorityClass("high", 100, corev1.PreemptLowerPriority), priorityClass("low", 1, corev1.PreemptLowerPriority),
					makeGroup("gang", 2, func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = tc.class }),
					makeMembers("gang", 2, tc.members))...)
				wantPlaced := int32(2)
				if tc.placed {
					wantPlaced++
					w.create(makePod("runs", inGroup("gang"), onNode("node-0"), ofPriority(11)))
				}
				w.standBy()
				w.eventually("the gang is seen", func() bool {
					known := w.known("gang")
					return known.Complete && known.Placed.Plus(known.Waiting).Total == wantPlaced
				})
				w.engine().gangs.SetSynced()
				w.eventually("the wake-up entry and the ordinary Pod are queued", func() bool {
					return len(w.sched.SchedulingQueue.PodsInActiveQ()) == 2
				})

				w.nextIsOrdinary()
				if first := w.known("gang").Placed.Total == wantPlaced; first != tc.wantFirst {
					t.Errorf("the gang is placed before the ordinary Pod has its cycle: %v, want %v", first, tc.wantFirst)
				}
			})
		})
	}
}

// TestGangsThatWereReadyFirstGoFirst, before ordinary Pods of the same priority, all of them,
// and also if a gang of higher priority has its cycle in between.
func TestGangsThatWereReadyFirstGoFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 40), bornAt(1, makeGroup("first", 1)), makeMembers("first", 1),
			bornAt(2, makeGroup("second", 1)), makeMembers("second", 1))...)
		w.standBy()
		w.eventually("both gangs are seen", func() bool { return w.known("first").Complete && w.known("second").Complete })
		w.engine().gangs.SetSynced()
		queued := func(n int) func() bool {
			return func() bool { return len(w.sched.SchedulingQueue.PodsInActiveQ()) == n }
		}
		w.eventually("the wake-up entry is queued", queued(1))
		w.create(makePod("ordinary"))
		w.eventually("the ordinary Pod is queued behind it", queued(2))
		w.create(bornAt(3, makeGroup("higher", 1)))
		w.create(makeMembers("higher", 1, plusCores("100"), ofPriority(10))[0])
		w.eventually("the wake-up entry of the gang that outranks all is queued", queued(3))

		w.nextIsOrdinary()
		for _, name := range []string{"first", "second"} {
			if w.known(name).Placed.Total != 1 {
				t.Errorf("%s has had no cycle before the ordinary Pod, which came later", name)
			}
		}
	})
}

// nextIsOrdinary takes the place of the scheduler once, to which nothing but the Pod "ordinary"
// is to be given.
func (w *world) nextIsOrdinary() {
	w.t.Helper()
	next, err := w.sched.NextEntity(klog.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	if got := next.(*framework.QueuedPodInfo).Pod.Name; got != "ordinary" {
		w.t.Fatalf("the scheduler is given %s, want the ordinary Pod", got)
	}
}
