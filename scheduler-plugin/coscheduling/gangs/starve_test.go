// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestWhoIsHelped: gangs are planned in vain one after the other, in this order. The first one in the queue is helped.
func TestWhoIsHelped(t *testing.T) {
	type waiting struct {
		name     string
		priority int32
		created  int
	}
	tests := map[string]struct {
		gangs []waiting
		want  string
	}{
		"the older of two":            {gangs: []waiting{{"a", 0, 1}, {"b", 0, 2}}, want: "a"},
		"though it was planned later": {gangs: []waiting{{"b", 0, 2}, {"a", 0, 1}}, want: "a"},
		"one of the highest priority": {gangs: []waiting{{"a", 0, 1}, {"b", 5, 2}}, want: "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			for i, gang := range tc.gangs {
				group := bornAt(gang.created, makeGroup(gang.name, 1))
				b.SetGroup(group)
				b.add(makePod(gang.name+"-0", inGroup(gang.name), ofPriority(gang.priority)))
				b.time = b.time.Add(time.Duration(i) * time.Second)
				view := b.cycle()
				b.fail(view.Key, group.UID, queue.Refusal{Message: "no room"}, 0, 0)
			}
			b.time = b.time.Add(5 * time.Minute)
			for range tc.gangs {
				view := b.cycle()
				if got := view.IsFirst; got != (view.Key == gangNamed(tc.want)) {
					t.Errorf("%s is helped: %t", view.Key.Name, got)
				}
				b.fail(view.Key, view.Group.UID, queue.Refusal{Message: "no room"}, 0, 0)
			}
		})
	}
}

// TestAGangThatHasJustLostAMemberIsNotGivenAway: long ago it was told that there is no room
// for one more than its minimum. Since when it lacks its minimum is not known yet.
func TestAGangThatHasJustLostAMemberIsNotGivenAway(t *testing.T) {
	b := newBench()
	b.SetGroup(bornAt(2, makeGroup("gang", 2)))
	pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang"))}
	b.add(pods...)
	view := b.cycle()
	b.Assume(&view, map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"})
	b.fail(gangName, view.Group.UID, queue.Refusal{Message: "no room for 1 more members above the minimum"}, 0, 0)
	for _, name := range []string{"a", "b"} {
		b.SetPod(makePod(name, inGroup("gang"), onNode("node-0")))
	}
	b.time = b.time.Add(time.Hour)
	b.DeletePod(makePod("b", inGroup("gang"), onNode("node-0")))
	lost := b.Standings()[gangName]
	if lost.Placed.Total != 1 || !lost.WaitsSince.IsZero() {
		t.Error("the gang is taken for one that has waited for long")
	}
}

// TestWhichGangsLackMembersAndWait: the ones that have lost what they had, and found no room for it.
func TestWhichGangsLackMembersAndWait(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(*bench)
		want  bool
	}{
		"one with fewer members than its minimum": {func(b *bench) {
			b.SetGroup(makeGroup("gang", 2))
			b.add(makePod("a", inGroup("gang"), onNode("node")), makePod("d", inGroup("gang")))
		}, true},
		"one with its minimum, and further members that wait": {func(b *bench) {
			b.SetGroup(makeGroup("gang", 1))
			b.add(makePod("a", inGroup("gang"), onNode("node")), makePod("d", inGroup("gang")))
		}, false},
		"one with a stage that runs, and a next stage that waits": {func(b *bench) {
			stages(b)
			b.add(makePod("d", inGroup("gang"), staged))
			b.tick(3 * time.Second)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			tc.begin(b)
			began := b.time
			view := b.cycle()
			b.fail(gangName, view.Group.UID, queue.Refusal{Message: "no room"}, 0, 0)
			b.time = b.time.Add(time.Hour)
			since := b.Standings()[gangName].WaitsSince
			if got := !since.IsZero() && !since.After(began); got != tc.want {
				t.Errorf("it waits: %t (since %s), want %t", got, since, tc.want)
			}
		})
	}
}

// TestSinceWhenAGangWaits: since it was first told that there is no room, also by a scheduler before this one, but
// not since before it had its members. A group that is made long before its Pods has no right to others' room for that.
func TestSinceWhenAGangWaits(t *testing.T) {
	const told = time.Hour // before the gang is planned
	for name, tc := range map[string]struct {
		reason string // what the conditions say
		// created is how long before the newest member was created, and gated has it have a gate until now.
		created time.Duration
		gated   bool
		// ours says that this scheduler has written the conditions.
		ours bool
		want time.Duration
	}{
		"a scheduler before found no room":                         {reason: schedulingv1alpha1.ReasonNotEnoughResources, created: 2 * told, want: told},
		"a member was made anew since":                             {reason: schedulingv1alpha1.ReasonNotEnoughResources, created: time.Minute, want: time.Minute},
		"it ran, and a scheduler before found no room":             {reason: schedulingv1alpha1.ReasonPodDeleted, created: 2 * told, want: told},
		"it ran, has lost a member that failed, and found no room": {reason: schedulingv1alpha1.ReasonPodFailed, created: time.Minute, want: time.Minute},
		"it lacked members":                                        {reason: schedulingv1alpha1.ReasonNotEnoughTasks, created: time.Minute},
		"it lacked members before, as this scheduler has told":     {reason: schedulingv1alpha1.ReasonNotEnoughResources, created: 2 * told, gated: true, ours: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			group := makeGroup("gang", 2)
			group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: tc.reason, LastTransitionTime: metav1.NewTime(b.time.Add(-told))}}
			b.SetGroup(group)
			born := func(ago time.Duration) podOption {
				return func(w *schedulertesting.PodWrapper) { w.CreationTimestamp(metav1.NewTime(b.time.Add(-ago))) }
			}
			b.add(makePod("first", inGroup("gang"), born(3*told)))
			if tc.gated {
				b.add(makePod("second", inGroup("gang"), born(tc.created), func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"queue"}) }))
			}
			if tc.ours {
				b.Remember(dialect.FromOwn(group), news.Record{Conditions: group.Status.Conditions, At: b.time.Add(-time.Minute)})
			}
			b.add(makePod("second", inGroup("gang"), born(tc.created)))
			if view := b.cycle(); !view.Since.Equal(b.time.Add(-tc.want)) {
				t.Errorf("it waits for %v, want %v", b.time.Sub(view.Since), tc.want)
			}
		})
	}
}
