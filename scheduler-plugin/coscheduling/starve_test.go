// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestManySmallGangsDoNotStarveABigOne: small gangs keep coming for the room that
// others leave, and the big one gets its turn all the same. What does not fit
// where room is held back still runs elsewhere.
func TestManySmallGangsDoNotStarveABigOne(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(0, makeGroup("big", 2)),
		bornAt(1, makeGroup("small0", 1)), bornAt(1, makeGroup("small1", 1)),
		makePod("small0-0", inGroup("small0"), onNode("node-0")), makePod("small1-0", inGroup("small1"), onNode("node-1")),
		makeMembers("big", 2, wholeNode))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.start()
	got := w.condition("big", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	if strings.Contains(got.Message, "held back") {
		t.Errorf("room is held back at once: %q", got.Message)
	}
	w.eventually("room is held back for the big gang", func() bool {
		return w.sched != nil && w.waiting()[news.Starving] == 1
	})
	// The small gangs come and go, faster than the big one finds the nodes free.
	w.create(bornAt(2, makeGroup("small2", 1)))
	w.create(makePod("small2-0", inGroup("small2")))
	w.deletePod("small0-0")
	w.eventually("the small gang has found no room", func() bool { return w.marked("small2") == 1 })
	got = w.condition("small2", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	if want := "room is held back for PodGroup ns/big, which is ahead"; !strings.Contains(got.Message, want) {
		t.Errorf("message %q, want one with %q", got.Message, want)
	}
	for _, node := range makeNodes("elsewhere", 1, 1) {
		w.create(node)
	}
	w.eventually("the small gang runs elsewhere", func() bool { return w.nodeOf()["small2-0"] == "elsewhere-0" })
	w.deletePod("small1-0")
	w.eventually("the big gang is placed", func() bool { return w.placed("big") == 2 })
}

// TestOrdinaryPodsDoNotStarveAGang: ordinary Pods keep coming too. Those that the
// gang is ahead of leave its room alone, and run where there is other room.
func TestOrdinaryPodsDoNotStarveAGang(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(5, makeGroup("big", 2)), makeMembers("big", 2, wholeNode),
		makePod("runs-0", onNode("node-0")), makePod("runs-1", onNode("node-1")))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.start()
	w.eventually("room is held back for the big gang", func() bool { return w.waiting()[news.Starving] == 1 })

	ordinary := func(name string, created int, options ...podOption) *corev1.Pod {
		return makePod(name, append(options, createdAt(created))...)
	}
	w.create(ordinary("younger", 6))
	w.eventually("the younger Pod has found no room", func() bool { return w.marked("younger") == 1 })
	w.create(ordinary("older", 4))
	w.create(ordinary("higher", 6, ofPriority(1)))
	w.eventually("the older Pod and the one of higher priority are placed", func() bool {
		return w.placed("older") == 1 && w.placed("higher") == 1
	})
	if w.placed("younger") != 0 {
		t.Error("the younger Pod took room that is held for the gang")
	}
	for _, node := range makeNodes("elsewhere", 1, 1) {
		w.create(node)
	}
	w.eventually("the younger Pod runs elsewhere", func() bool { return w.nodeOf()["younger"] == "elsewhere-0" })
	for _, name := range []string{"runs-0", "older", "runs-1", "higher"} {
		w.deletePod(name)
	}
	w.eventually("the big gang is placed", func() bool { return w.placed("big") == 2 })
}

// waiting counts the gangs that wait by reason, as the metric does.
func (w *world) waiting() map[string]int {
	w.t.Helper()
	return w.tracker().waitingGangs()
}

func TestWhoStarves(t *testing.T) {
	// Gangs are planned in vain one second after the other, in this order, and
	// are asked a minute after the first.
	type waiting struct {
		name     string
		priority int32
		created  int
	}
	tests := map[string]struct {
		gangs []waiting
		after time.Duration
		want  []string
	}{
		"nobody before the time":     {gangs: []waiting{{"a", 0, 1}}, after: 2 * time.Minute},
		"nobody if it is turned off": {gangs: []waiting{{"a", 0, 1}}, after: 0},
		"the older of two":           {gangs: []waiting{{"a", 0, 1}, {"b", 0, 2}}, after: 30 * time.Second, want: []string{"a"}},
		"only at the highest priority that waits": {
			gangs: []waiting{{"a", 0, 1}, {"b", 5, 2}}, after: 30 * time.Second, want: []string{"b"},
		},
		"the younger one, if the older has not waited for long": {
			gangs: []waiting{{"young", 0, 2}, {"old", 0, 1}}, after: 59500 * time.Millisecond, want: []string{"young"},
		},
		"nobody below one of higher priority that has not waited for long": {
			gangs: []waiting{{"low", 0, 2}, {"high", 5, 1}}, after: 59500 * time.Millisecond,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.starvesAfter = tc.after
			start := b.time
			for i, gang := range tc.gangs {
				b.time = start.Add(time.Duration(i) * time.Second)
				group := bornAt(gang.created, makeGroup(gang.name, 1))
				b.setGroup(group)
				b.add(makePod(gang.name+"-0", inGroup(gang.name), ofPriority(gang.priority)))
				view := b.turn()
				b.fail(view.Key, group.UID, line.Refusal{Message: "no room"}, 0, 0)
			}
			b.time = start.Add(time.Minute)
			var got []string
			for _, gang := range tc.gangs {
				if b.starves(gangNamed(gang.name)) {
					got = append(got, gang.name)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("starving are %v, want %v", got, tc.want)
			}
		})
	}
}

// TestAServiceIsRolledOutBesideAGangThatStarves: what its old Pods leave is for the new
// ones. Nothing is held back on nodes where only services run, as they don't end.
func TestAServiceIsRolledOutBesideAGangThatStarves(t *testing.T) {
	service := func(name, node string) *corev1.Pod { return makePod(name, ofService, onNode(node), createdAt(5)) }
	w := newWorld(t, all(makeNodes("node", 1, 3), makeNodes("served", 1, 3), bornAt(1, makeGroup("big", 1)),
		makeMembers("big", 1, plusCores("1")),
		service("old-0", "node-0"), service("old-1", "served-0"), service("old-2", "served-0"),
		makePod("job-0", onNode("node-0")), makePod("job-1", onNode("node-0")), service("old-3", "served-0"))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.start()
	w.eventually("room is held back for the gang", func() bool { return w.waiting()[news.Starving] == 1 })
	for i, node := range []string{"node-0", "served-0", "served-0"} {
		old, new := fmt.Sprintf("old-%d", i), fmt.Sprintf("new-%d", i)
		before := w.failures("big")
		w.deletePod(old)
		if node == "node-0" {
			w.eventually("the gang was planned again", func() bool { return w.failures("big") > before })
		}
		w.create(service(new, ""))
		w.eventually(new+" has the place of "+old, func() bool { return w.nodeOf()[new] == node })
	}
	younger := makePod("younger", createdAt(5))
	w.deletePod("job-0")
	w.create(younger)
	w.eventually("the younger Pod finds no room", func() bool { return w.marked("younger") == 1 })
	w.deletePod("job-1")
	w.eventually("the gang is placed", func() bool { return w.placed("big") == 1 })
}

// TestNothingIsHeldBackWhereOnlyServicesRun, DaemonSets and static Pods among them: they
// don't end.
func TestNothingIsHeldBackWhereOnlyServicesRun(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("big", 1)), makeMembers("big", 1, plusCores("1")),
		makePod("service-0", ofService, onNode("node-0")))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.noBackoff = true
	w.start()
	w.condition("big", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	w.eventually("it is known that the gang can't be helped", func() bool { return w.helpless("big") })
	younger := makePod("younger", ofService, createdAt(5))
	w.create(younger)
	w.eventually("the younger Pod is placed", func() bool { return w.placed("younger") == 1 })
}

// TestAGangThatCantBeHelpedKeepsNoOtherFromIt: its node selector fits no node.
func TestAGangThatCantBeHelpedKeepsNoOtherFromIt(t *testing.T) {
	nowhere := func(p *schedulertesting.PodWrapper) { p.NodeSelector(map[string]string{"no": "such"}) }
	w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(0, makeGroup("hopeless", 1)), makeMembers("hopeless", 1, nowhere),
		bornAt(1, makeGroup("big", 1)), makeMembers("big", 1, plusCores("1")), makePod("job-0", onNode("node-0")))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.start()
	w.eventually("room is held back for the gang behind", func() bool { return w.waiting()[news.Starving] == 1 })
	w.deletePod("job-0")
	w.eventually("it is placed", func() bool { return w.placed("big") == 1 })
}

// TestABarrierThatDoesNotGrowIsGivenUp for a while, so that the room that it keeps is of
// use to others.
func TestABarrierThatDoesNotGrowIsGivenUp(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 3), bornAt(1, makeGroup("big", 1)), makeMembers("big", 1, plusCores("2")),
		makePod("job-0", onNode("node-0")))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.noBackoff = true // of ordinary Pods, which may be longer than the barrier is away
	w.start()
	w.eventually("room is held back for the gang", func() bool { return w.waiting()[news.Starving] == 1 })
	younger := makePod("younger", plusCores("1"), createdAt(5))
	w.create(younger)
	w.eventually("the younger Pod finds no room", func() bool { return w.marked("younger") == 1 })
	w.eventually("it has the room, as the gang makes no headway", func() bool { return w.placed("younger") == 1 })
}

// failures is how often in a row a gang has found no place.
func (w *world) failures(group string) int {
	tracker := w.tracker()
	tracker.mu.RLock()
	defer tracker.mu.RUnlock()
	return tracker.line.Failures(gangNamed(group))
}

// TestTwoBrokenGangsDoNotWaitForEachOther: each has lost a member, and the cluster has no
// room but theirs. The one behind gives way.
func TestTwoBrokenGangsDoNotWaitForEachOther(t *testing.T) {
	placed := func(group string) []apiruntime.Object {
		return makeMembers(group, 3, onNode("node-0"))
	}
	replacement := func(group string) *corev1.Pod { return makePod(group+"-9", inGroup(group)) }
	w := newWorld(t, all(makeNodes("node", 1, 6), bornAt(1, makeGroup("first", 4)), bornAt(2, makeGroup("second", 4)),
		placed("first"), placed("second"), replacement("first"), replacement("second"))...)
	w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","starvationAfter":"1s"}`
	w.start()
	w.eventually("the first is whole", func() bool { return w.placed("first") == 4 })
	if n := w.placed("second"); n != 0 {
		t.Errorf("%d members of the second are left", n)
	}
}

// helpless says whether a gang has given up its right to be helped.
func (w *world) helpless(group string) bool {
	return w.told(group).Helpless > 0
}

// TestAGangThatHadItsPlaceHasNotWaitedSinceItsFirstCycle: it lost a member an hour
// after it was placed, and looks for room for the replacement since a second.
func TestAGangThatHadItsPlaceHasNotWaitedSinceItsFirstCycle(t *testing.T) {
	b := newBench()
	b.starvesAfter = time.Minute
	group, first := makeGroup("gang", 1), makePod("first", inGroup("gang"))
	b.setGroup(group)
	b.add(first)
	b.turn()
	b.assumeAll(map[types.UID]string{first.UID: "node-0"})
	bound := makePod("first", inGroup("gang"), onNode("node-0"))
	b.setPod(bound)

	b.time = b.time.Add(time.Hour)
	b.deletePod(bound)
	second := makePod("second", inGroup("gang"))
	b.add(second)
	b.turn()
	b.fail(gangName, group.UID, line.Refusal{Message: "no room"}, 0, 0)
	b.time = b.time.Add(59 * time.Second)
	if b.starves(gangName) {
		t.Error("the gang starves before it has waited for a minute")
	}
	b.time = b.time.Add(time.Second)
	if !b.starves(gangName) {
		t.Error("the gang does not starve when it has waited for a minute")
	}
}

// TestAGangThatHasJustLostAMemberIsNotGivenAway: long ago it was told that there is no room
// for one more than its minimum. Since when it lacks its minimum is not known yet.
func TestAGangThatHasJustLostAMemberIsNotGivenAway(t *testing.T) {
	b := newBench()
	b.setGroup(bornAt(2, makeGroup("gang", 2)))
	pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang"))}
	b.add(pods...)
	view := b.turn()
	b.assume(&view, map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"})
	b.fail(gangName, view.Group.UID, line.Refusal{Message: "no room for 1 more members above the minimum"}, 0, 0)
	for _, name := range []string{"a", "b"} {
		b.setPod(makePod(name, inGroup("gang"), onNode("node-0")))
	}
	b.time = b.time.Add(time.Hour)
	b.deletePod(makePod("b", inGroup("gang"), onNode("node-0")))
	lost := b.standings()[gangName]
	if lost.Placed.Total != 1 || lost.Waits {
		t.Error("the gang is taken for one that has waited for long")
	}
}
