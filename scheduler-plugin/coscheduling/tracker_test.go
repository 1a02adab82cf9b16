// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// bench is a tracker with a clock in the test's hands, and the reports that it asked for.
type bench struct {
	*tracker
	time   time.Time
	report map[types.NamespacedName]time.Duration
	// starvesAfter is after what time gangs that are refused starve; 0 for never.
	starvesAfter time.Duration
}

func newBench() *bench {
	b := &bench{
		time:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		report: map[types.NamespacedName]time.Duration{},
	}
	b.tracker = newTracker(
		func(name string) bool { return name == testScheduler },
		func() time.Time { return b.time },
		func() {},
		func(key types.NamespacedName, d time.Duration) { b.report[key] = d },
	)
	b.setSynced()
	return b
}

var gangName = types.NamespacedName{Namespace: testNamespace, Name: "gang"}

// toldWhy is what a gang's conditions are to say now, empty for nothing new.
func (b *bench) toldWhy(key types.NamespacedName) string {
	gang, _ := b.Look(key)
	conditions, _ := gang.News(b.time, "id")
	if len(conditions) == 0 {
		return ""
	}
	return conditions[0].Message
}

// write has a gang's conditions written, and returns what was.
func (b *bench) write(key types.NamespacedName) news.Record {
	gang, _ := b.Look(key)
	conditions, _ := gang.News(b.time, "id")
	record := news.Record{Conditions: conditions, At: b.time}
	b.Remember(gang.Group, record)
	return record
}

// unmarked are the Pods of a gang that are to be told something now, and in what time
// others are.
func (b *bench) unmarked(key types.NamespacedName) ([]types.UID, time.Duration) {
	gang, _ := b.Look(key)
	return gang.Unmarked(b.time)
}

// markOf is what a Pod of the gang "gang" is to be told.
func (b *bench) markOf(pod *corev1.Pod) news.Mark {
	gang, waiting, ok := b.LookAt(gangName, pod.UID)
	if !ok {
		return news.Mark{}
	}
	mark, _ := gang.MarkOf(waiting)
	return mark
}

// add makes members known.
func (b *bench) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.setPod(pod)
	}
}

// turn begins the turn of the gang that is next, which has no name if there is none.
func (b *bench) turn() gangView {
	view, _ := b.begin(math.MinInt32, b.time)
	return view
}

// isNext says whether a gang is to have its turn now.
func (b *bench) isNext(key types.NamespacedName) bool {
	next, ok := b.line.Next(b.time)
	return ok && next.Key == key
}

// fail ends a turn without a place.
func (b *bench) fail(key types.NamespacedName, uid types.UID, why line.Refusal, initial, longest time.Duration) {
	b.tracker.fail(key, uid, why, line.Terms{Initial: initial, Longest: longest, Patience: b.starvesAfter})
}

// somethingHappens is an event that may help any gang.
func (b *bench) somethingHappens() {
	b.happened(fwk.ClusterEvent{Resource: fwk.StorageClass, ActionType: fwk.Add}, nil, nil)
}

func onNode(node string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Node(node) }
}

func inPhase(phase corev1.PodPhase) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Phase(phase) }
}

// TestWhoIsInLine, and what a gang is told that is not.
func TestWhoIsInLine(t *testing.T) {
	member := func(name string, options ...podOption) *corev1.Pod {
		return makePod(name, append([]podOption{inGroup("gang")}, options...)...)
	}
	tests := map[string]struct {
		group *schedulingv1alpha1.PodGroup
		pods  []*corev1.Pod
		// want is what the gang lacks; empty if it is in line.
		want string
	}{
		"no gang whose group nobody has seen": {
			pods: []*corev1.Pod{member("a")}, want: "its group",
		},
		"no incomplete gang": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a")},
			want:  "1 of at least 2 members exist",
		},
		"a complete gang": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("b"), member("a")},
		},
		"one that placed and succeeded members make complete": {
			group: makeGroup("gang", 3),
			pods:  []*corev1.Pod{member("a", onNode("n")), member("b", onNode("n"), inPhase(corev1.PodSucceeded)), member("c")},
		},
		"none that failed members and those being deleted would": {
			group: makeGroup("gang", 3),
			pods: []*corev1.Pod{member("a", onNode("n"), inPhase(corev1.PodFailed)), member("c"),
				member("b", func(w *schedulertesting.PodWrapper) { w.Terminating() })},
			want: "1 of at least 3 members exist",
		},
		"none that members of other schedulers and gated ones would": {
			group: makeGroup("gang", 2),
			pods: []*corev1.Pod{member("c"),
				member("a", func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") }),
				member("b", func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) })},
			want: "1 of at least 2 members exist",
		},
		"none that members in another namespace would": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a"), member("b", func(w *schedulertesting.PodWrapper) { w.Namespace("elsewhere") })},
			want:  "1 of at least 2 members exist",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			if tc.group != nil {
				b.setGroup(tc.group)
			}
			b.add(tc.pods...)
			got := ""
			if !b.isNext(gangName) {
				got = "its group"
				if told := b.toldWhy(gangName); told != "" {
					got = told
				}
			}
			if got != tc.want {
				t.Errorf("the gang lacks %q, want %q", got, tc.want)
			}
		})
	}
}

// TestBackoff follows a gang through failures: the wait doubles, room that grows
// starts it over, and nothing is planned before it ends.
func TestBackoff(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")), makePod("b", inGroup("gang")))
	for i, step := range []struct {
		room int
		want time.Duration
	}{
		{0, time.Second}, {0, 2 * time.Second}, {0, 4 * time.Second}, {0, 5 * time.Second}, {0, 5 * time.Second},
		{1, time.Second}, {1, 2 * time.Second},
	} {
		if b.turn().Key != gangName {
			t.Fatalf("step %d: the gang is not planned", i)
		}
		b.fail(gangName, group.UID, line.Refusal{Message: "no room", Room: step.room}, time.Second, 5*time.Second)
		b.somethingHappens()
		if got := b.line.Until().Sub(b.time); got != step.want {
			t.Errorf("step %d: an event wakes the gang after %v, want %v", i, got, step.want)
		}
		b.time = b.time.Add(step.want - time.Millisecond)
		if b.isNext(gangName) {
			t.Errorf("step %d: the gang is due before its back-off ends", i)
		}
		b.time = b.time.Add(time.Millisecond)
		if !b.isNext(gangName) {
			t.Errorf("step %d: the gang is not due when its back-off ends", i)
		}
	}
}

func TestRecreatedGroupInheritsNothing(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	b.turn()
	b.fail(gangName, group.UID, line.Refusal{Message: "no room"}, time.Hour, time.Hour)
	late := b.write(gangName)

	again := makeGroup("gang", 1)
	again.UID = "another"
	b.setGroup(again)
	if !b.isNext(gangName) {
		t.Error("the new group has no turn")
	}
	b.fail(gangName, group.UID, line.Refusal{Message: "late news of the old group"}, time.Hour, time.Hour)
	b.Remember(group, late)
	if got := b.toldWhy(gangName); got != "" {
		t.Errorf("the new group is told what the old one was: %q", got)
	}
	if gang, _ := b.Look(gangName); gang.Record.Conditions != nil {
		t.Errorf("the new group has the conditions of the old one: %v", gang.Record.Conditions)
	}
	if !b.isNext(gangName) {
		t.Error("a failure of the old group keeps the new one from its turn")
	}
}

// TestNoRoomIsHeldAboveTheMinimum: a gang with one of two members placed loses its
// right to room when one is enough.
func TestNoRoomIsHeldAboveTheMinimum(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang")))
	b.fail(gangName, group.UID, line.Refusal{Message: "no room"}, time.Second, time.Second)
	if !b.waits(gangName, group.UID, 0) {
		t.Error("no room is held for a gang that lacks its minimum")
	}
	lowered := makeGroup("gang", 1)
	lowered.Generation = 2
	b.setGroup(lowered)
	if b.waits(gangName, group.UID, 0) {
		t.Error("room is held for a gang that has its minimum")
	}
}

// assumeAll has the gang's members placed as a cycle does that began just now.
func (b *bench) assumeAll(nodes map[types.UID]string) bool {
	return b.assume(&gangView{Gang: place.Gang{Key: gangName, Group: b.gangs[gangName].group}}, nodes)
}

// TestAGangThatChangesWhileItIsPlannedIsNotPlaced, if what was found is too little now.
func TestAGangThatChangesWhileItIsPlannedIsNotPlaced(t *testing.T) {
	tests := map[string]struct {
		change func(*bench)
		want   bool
	}{
		"nothing changes": {change: func(*bench) {}, want: true},
		"a member is gone": {change: func(b *bench) {
			b.deletePod(makePod("a", inGroup("gang")))
		}},
		"a member above the minimum is gone": {change: func(b *bench) {
			b.deletePod(makePod("c", inGroup("gang")))
		}, want: true},
		"the minimum is higher": {change: func(b *bench) {
			higher := makeGroup("gang", 4)
			higher.Generation = 2
			b.setGroup(higher)
		}},
		"the group is another one": {change: func(b *bench) {
			another := makeGroup("gang", 2)
			another.UID = "another"
			b.setGroup(another)
		}},
		"the group is gone": {change: func(b *bench) { b.deleteGroup(makeGroup("gang", 2)) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.setGroup(makeGroup("gang", 2))
			b.add(makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang")))
			view := b.turn()
			nodes := map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"}
			if name == "a member above the minimum is gone" {
				nodes["uid-c"] = "node-0"
			}
			tc.change(b)
			if got := b.assume(&view, nodes); got != tc.want {
				t.Errorf("the gang is placed: %t, want %t", got, tc.want)
			}
			if g := b.gangs[gangName]; g != nil && !tc.want && g.placed.Total > 0 {
				t.Errorf("%d members are placed, want none", g.placed.Total)
			}
		})
	}
}

// TestAMemberThatGoesInTheTurnIsNotPlanned: the others have their place, and nobody is left.
func TestAMemberThatGoesInTheTurnIsNotPlanned(t *testing.T) {
	for when, goes := range map[string]func(b *bench, view *gangView, nodes map[types.UID]string, pod *corev1.Pod){
		"before the others have their place": func(b *bench, view *gangView, nodes map[types.UID]string, pod *corev1.Pod) {
			b.deletePod(pod)
			b.assume(view, nodes)
		},
		"after the others have their place": func(b *bench, view *gangView, nodes map[types.UID]string, pod *corev1.Pod) {
			b.assume(view, nodes)
			b.deletePod(pod)
		},
	} {
		t.Run(when, func(t *testing.T) {
			b := newBench()
			b.setGroup(makeGroup("gang", 2))
			pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang"))}
			b.add(pods...)
			view := b.turn()
			goes(b, &view, map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"}, pods[2])
			b.fail(gangName, view.Group.UID, line.Refusal{Message: "no room for 1 more members above the minimum"}, 0, 0)
			if b.line.IsReady(gangName) {
				t.Error("the gang is to be planned, though nobody waits")
			}
			b.somethingHappens()
			if view := b.turn(); view.Group != nil {
				t.Errorf("the gang has a turn with %d members that wait", len(view.Waiting))
			}
		})
	}
}

// TestAHoldOutlastsTheTurnThatMadeIt: it is known only after the turn that the gang has
// found no place, and holds may be pruned before.
func TestAHoldOutlastsTheTurnThatMadeIt(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	if !b.waits(gangName, group.UID, 0) {
		t.Error("the gang's hold would be pruned in its turn")
	}
}
