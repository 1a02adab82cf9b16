// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// keeping has a bench keep room for members to come, for ten minutes.
func keeping(b *bench) *bench {
	b.config.Provision = func(dialect.Key) provision.Terms {
		return provision.Terms{Mode: provision.Strict, Longest: 10 * time.Minute, Percent: 100}
	}
	return b
}

func asking(cores string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(spec *schedulingv1alpha1.PodGroupSpec) {
		spec.MinResources = map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse(cores)}
	}
}

// cores has a Pod request n cores.
func cores(n string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": n}) }
}

// placedAt has a Pod be placed on a node since a number of minutes after a time.
func placedAt(began time.Time, minute int) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Node("node")
		w.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(began.Add(time.Duration(minute) * time.Minute))}}
	}
}

// keeps has room be sought for the gang "gang", of which so much is kept.
func (b *bench) keeps(held provision.Amounts) {
	b.Sought(gangName, "uid-of-group-gang", Sought{Rest: b.gangs[gangName].provided.due.Rest(), Held: held, Kept: !held.IsZero()})
}

// TestPlacesForPodsAloneAreRoom: who has had nothing else kept owes the time, too.
func TestPlacesForPodsAloneAreRoom(t *testing.T) {
	b := keeping(newBench())
	began := b.time
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), placedAt(began, 0)))
	b.Sought(gangName, "uid-of-group-gang", Sought{Rest: b.gangs[gangName].provided.due.Rest(), Kept: true})
	b.time = began.Add(9 * time.Minute)
	b.DeletePod(makePod("driver", inGroup("gang")))
	b.add(makePod("driver-2", inGroup("gang")))
	if view := b.turn(); view.Provision == nil || view.Provision.Last.IsZero() {
		t.Errorf("the next driver is to have room kept as by %+v, want no more than what is left of the time", view.Provision)
	}
}

// TestWhatChangesWhileRoomIsSoughtHasItSoughtAgain: a node that goes in the gang's own turn, say.
func TestWhatChangesWhileRoomIsSoughtHasItSoughtAgain(t *testing.T) {
	for _, changes := range []bool{false, true} {
		b := keeping(newBench())
		b.SetGroup(makeGroup("gang", 1, asking("13")))
		b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
		view := b.turn()
		if changes {
			b.SeekRoom(gangName)
		}
		b.sought(view, view.Provision.Rest())
		b.time = b.time.Add(time.Minute)
		if b.isNext(gangName) != changes {
			t.Errorf("it has another turn: %t, want %t", !changes, changes)
		}
	}
}

// rest is how much room is to be kept for the gang "gang" in cores, -1 if none is to be.
func (b *bench) rest() int64 {
	due := b.gangs[gangName].provided.due
	if due == nil {
		return -1
	}
	return due.Rest()[corev1.ResourceCPU] / 1000
}

// TestTheRestNeverGrows while members have a place: one that goes does not have more room kept.
func TestTheRestNeverGrows(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	driver, executor := makePod("driver", inGroup("gang"), cores("1")), makePod("exec", inGroup("gang"), cores("2"))
	b.add(driver)
	if got := b.rest(); got != 13 {
		t.Errorf("before it starts the rest is %d, want 13", got)
	}
	if view := b.turn(); view.Provision == nil || view.Provision.Started || view.Provision.Model.Name != "driver" {
		t.Errorf("its turn is to seek %+v", view.Provision)
	}
	b.assumeAll(gangName, map[types.UID]string{driver.UID: "node"})
	if got := b.rest(); got != 12 {
		t.Errorf("with its driver the rest is %d, want 12", got)
	}
	b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")), makePod("exec", inGroup("gang"), cores("2"), onNode("node")))
	if got := b.rest(); got != 10 {
		t.Errorf("with an executor the rest is %d, want 10", got)
	}
	b.DeletePod(executor)
	if got := b.rest(); got != 10 {
		t.Errorf("without it the rest is %d, want 10", got)
	}
	b.add(makePod("exec-2", inGroup("gang"), cores("2"), onNode("node")), makePod("exec-3", inGroup("gang"), cores("6"), onNode("node")))
	if got := b.rest(); got != 4 {
		t.Errorf("with 9 cpu placed the rest is %d, want 4", got)
	}
	b.SetGroup(makeGroup("gang", 1, asking("9")))
	if got := b.rest(); got != -1 {
		t.Errorf("when it asks for no more the rest is %d, want none", got)
	}
	if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptFilled {
		t.Errorf("what is kept is %q, want filled", kept)
	}
	if kept := b.Provides(gangName, "another"); kept != KeptGone {
		t.Errorf("what is kept for another group of its name is %q, want gone", kept)
	}
}

// TestAGangSeeksRoomOnceForEachRest, whether or not a member waits.
func TestAGangSeeksRoomOnceForEachRest(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
	for range 2 {
		view := b.turn()
		if view.Key != gangName || len(view.Waiting) > 0 {
			t.Fatalf("the turn is that of %+v, want one in which nobody waits", view)
		}
		b.sought(view, view.Provision.Rest())
		if b.isNext(gangName) {
			t.Fatal("it has another turn for the same")
		}
		b.SeekRoom(gangName) // somebody has taken of it
		b.time = b.time.Add(2 * time.Second)
	}
	b.Sought(gangName, "uid-of-group-gang", Sought{Rest: provision.Amounts{"cpu": 1}, Held: provision.Amounts{"cpu": 1}, Kept: true})
	if !b.isNext(gangName) {
		t.Error("it has no other turn, though room was sought for less")
	}
}

// sought ends a turn in which no member waited.
func (b *bench) sought(view View, rest provision.Amounts) {
	b.Sought(view.Key, view.Group.UID, Sought{Rest: rest, Held: rest, Kept: true})
	b.EndSeek(view.Key, 0)
}

// TestWhoAsksForAnotherAmountAllTheTimeHasFewTurns: each is a plan of all members to come.
func TestWhoAsksForAnotherAmountAllTheTimeHasFewTurns(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("5000")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
	turns := 0
	for i := range 50 * 60 {
		b.SetGroup(makeGroup("gang", 1, asking(strconv.Itoa(4999-i))))
		for b.isNext(gangName) {
			turns++
			view := b.turn()
			b.sought(view, view.Provision.Rest())
		}
		b.time = b.time.Add(20 * time.Millisecond)
	}
	if turns < 5 || turns > 7 {
		t.Errorf("it has %d turns in a minute, want one at once, and more after 1, 3, 7, 15 and 31 seconds", turns)
	}
}

// TestMoreRoomIsSoughtWhenSomeBecomesFree, if there was not enough, and not when the gang itself gives some up.
func TestMoreRoomIsSoughtWhenSomeBecomesFree(t *testing.T) {
	frees := map[string]func(b *bench){
		"a Pod ends": func(b *bench) {
			b.Happened(line.PodEnded, func() line.Event { return line.Event{Kind: line.PodEnded} })
		},
		"a node comes": func(b *bench) {
			b.Happened(line.NodeChanged, func() line.Event { return line.Event{Kind: line.NodeChanged} })
		},
		"another gives up": func(b *bench) { b.Offer(gangNamed("other")) },
	}
	for name, happens := range frees {
		for _, held := range []int64{11_000, 12_000} {
			for _, inTurn := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d are held, in its turn: %t", name, held, inTurn), func(t *testing.T) {
					b := keeping(newBench())
					b.SetGroup(makeGroup("gang", 1, asking("13")))
					b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
					view := b.turn()
					b.Offer(gangName)
					if inTurn {
						happens(b)
					}
					b.Sought(view.Key, view.Group.UID, Sought{Rest: view.Provision.Rest(), Held: provision.Amounts{"cpu": held}, Kept: held > 0})
					b.EndSeek(view.Key, 0)
					b.time = b.time.Add(time.Minute)
					if !inTurn {
						b.Offer(gangName)
						if b.isNext(gangName) {
							t.Fatal("it has a turn, and nothing has become free")
						}
						happens(b)
					}
					if got, want := b.isNext(gangName), held < 12_000; got != want {
						t.Errorf("it has a turn: %t, want %t", got, want)
					}
				})
			}
		}
	}
}

// TestAMemberThatComesHasRoomSoughtForTheOthers at once, in the turn in which it is placed, whatever came before.
func TestAMemberThatComesHasRoomSoughtForTheOthers(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
	view := b.turn()
	b.sought(view, view.Provision.Rest())
	b.SeekRoom(gangName)
	executor := makePod("exec", inGroup("gang"), cores("2"))
	b.add(executor)
	if view = b.turn(); len(view.Waiting) != 1 {
		t.Fatalf("its turn is %+v, want one for its executor", view)
	}
	b.assumeAll(gangName, map[types.UID]string{executor.UID: "node"})
	if !b.isNext(gangName) {
		t.Error("it has no turn, and no room was sought yet for the others")
	}
	rest := b.gangs[gangName].provided.due.Rest()
	b.Sought(gangName, view.Group.UID, Sought{Rest: rest, Held: rest, Kept: true})
	if b.isNext(gangName) {
		t.Error("it has another turn, and room was sought")
	}
	b.SeekRoom(gangName)
	if !b.isNext(gangName) {
		t.Error("room that is taken afterwards is not sought at once")
	}
}

// TestRoomThatIsTakenHelpsNobodyWhoWaits: a gang that found no place for a member is not planned again each time that
// another Pod comes to a node on which it has room, but has room sought with its next turn.
func TestRoomThatIsTakenHelpsNobodyWhoWaits(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
	view := b.turn()
	b.sought(view, view.Provision.Rest())
	b.add(makePod("exec", inGroup("gang"), cores("2")))
	view = b.turn()
	b.fail(gangName, view.Group.UID, line.Refusal{}, time.Second, time.Second)
	b.time = b.time.Add(10 * time.Second)
	b.SeekRoom(gangName)
	if b.isNext(gangName) {
		t.Error("it has a turn, and others have taken room")
	}
	b.somethingHappens()
	if view = b.turn(); len(view.Waiting) != 1 || !view.SeeksRoom {
		t.Errorf("its next turn is %+v, want one in which room is sought too", view)
	}
}

// TestAGangOfWhichTheTimeIsOverSeeksNoRoom, also if none was kept that could expire.
func TestAGangOfWhichTheTimeIsOverSeeksNoRoom(t *testing.T) {
	for name, waits := range map[string]bool{"nobody waits": false, "a member waits": true} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBench())
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			b.add(makePod("driver", inGroup("gang"), cores("1"), placedAt(b.time, 0)))
			view := b.turn()
			b.Sought(gangName, view.Group.UID, Sought{Rest: view.Provision.Rest()})
			b.EndSeek(gangName, 0)
			if waits {
				b.add(makePod("exec", inGroup("gang"), cores("2")))
			}
			b.time = b.time.Add(10 * time.Minute)
			b.Offer(gangNamed("other"))
			if view = b.turn(); view.Key != gangName || view.Provision != nil || view.SeeksRoom {
				t.Errorf("its turn is %+v, want one in which no room is sought", view)
			}
			if waits {
				return
			}
			b.EndSeek(gangName, 0)
			b.time = b.time.Add(time.Minute)
			b.Offer(gangNamed("other"))
			if b.isNext(gangName) {
				t.Error("it has another turn")
			}
		})
	}
}

// TestMembersOfAGangThatIsNotCompleteAreNotPlaced when room is sought for those that are to come: those of a
// stage that is still gathered, say.
func TestMembersOfAGangThatIsNotCompleteAreNotPlaced(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 3, asking("13")))
	b.add(makePod("init", inGroup("gang"), staged, cores("1"), onNode("node")))
	b.tick(3 * time.Second)
	b.add(makePod("next", inGroup("gang"), staged, cores("1")))
	view := b.turn()
	if view.Key != gangName || view.Provision == nil {
		t.Fatalf("the turn is %+v, want one in which room is sought", view)
	}
	if len(view.Waiting) > 0 {
		t.Errorf("%d members are placed in it", len(view.Waiting))
	}
}

// TestRoomIsKeptBetweenTwoStages: an initializer has succeeded, and the nodes are to come. It lasts no longer for
// that, and not beyond the last stage.
func TestRoomIsKeptBetweenTwoStages(t *testing.T) {
	succeeded := inPhase(corev1.PodSucceeded)
	for name, isNew := range map[string]bool{"under one scheduler": false, "under one that takes over": true} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBench())
			began := b.time
			initializer := func(more ...podOption) *corev1.Pod {
				return makePod("init", append([]podOption{inGroup("gang"), staged, cores("1"), placedAt(began, 0)}, more...)...)
			}
			b.SetGroup(makeGroup("gang", 3, asking("13")))
			if !isNew {
				b.add(initializer())
				b.tick(3 * time.Second)
			}
			b.add(initializer(succeeded))
			b.tick(3 * time.Second)
			if got := b.rest(); got != 12 {
				t.Fatalf("the rest is %d when the initializer has succeeded, want 12", got)
			}
			if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptOn {
				t.Errorf("what is kept is %q, want that it is kept on", kept)
			}
			if end := b.gangs[gangName].provided.due.End; !end.Equal(began.Add(10 * time.Minute)) {
				t.Errorf("it is kept until %s, want ten minutes from when the initializer was placed at %s", end, began)
			}
			b.add(makePod("node-0", inGroup("gang"), staged, cores("6"), placedAt(began, 1)))
			if got := b.rest(); got != 6 {
				t.Errorf("with a node the rest is %d, want 6", got)
			}
			for _, node := range []string{"node-0", "node-1"} {
				b.add(makePod(node, inGroup("gang"), staged, cores("6"), placedAt(began, 2), succeeded))
			}
			if got := b.rest(); got != -1 {
				t.Errorf("when all have succeeded the rest is %d, want none", got)
			}
		})
	}
}

// TestRoomIsOverAtTheSameTimeAfterARestart, as it follows from when members were placed.
func TestRoomIsOverAtTheSameTimeAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		placed []int
		now    int
		want   int64
	}{
		"it goes on":                {[]int{0}, 9, 11},
		"it goes on with each":      {[]int{0, 9}, 18, 9},
		"it is over":                {[]int{0}, 10, -1},
		"it was over when one came": {[]int{0, 11}, 12, -1},
		"it has lasted too long":    {[]int{0, 9, 18, 27}, 31, -1},
	} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBlindBench())
			began := b.time
			b.time = began.Add(time.Duration(tc.now) * time.Minute)
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			for i, minute := range tc.placed {
				b.add(makePod(string(rune('a'+i)), inGroup("gang"), cores("2"), placedAt(began, minute)))
			}
			b.SetSynced()
			if got := b.rest(); got != tc.want {
				t.Errorf("the rest is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestAClockThatIsWrongDoesNotChangeHowLongRoomIsKept: the API server says when a member was bound, and may be
// an hour off. A scheduler that has seen it bound goes by its own clock.
func TestAClockThatIsWrongDoesNotChangeHowLongRoomIsKept(t *testing.T) {
	for name, skew := range map[string]int{"behind": -60, "right": 0, "ahead": 60} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBench())
			began := b.time
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			b.add(makePod("driver", inGroup("gang")))
			b.add(makePod("driver", inGroup("gang"), placedAt(began, skew)))
			b.time = began.Add(9 * time.Minute)
			b.SeekRoom(gangName)
			if due := b.gangs[gangName].provided.due; due == nil || !due.End.Equal(began.Add(10*time.Minute)) {
				t.Errorf("after nine minutes %+v is due, want room until ten", due)
			}
			b.time = began.Add(10 * time.Minute)
			b.SeekRoom(gangName)
			if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptExpired {
				t.Errorf("after ten minutes what is kept is %q, want expired", kept)
			}
		})
	}
}

// TestTimeForWhichNothingWasKeptDoesNotCount: the next members have room kept as long as any.
func TestTimeForWhichNothingWasKeptDoesNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		held provision.Amounts
		owes bool
	}{
		"room was kept":     {provision.Amounts{"cpu": 1000}, true},
		"there was no room": {provision.Amounts{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBench())
			began := b.time
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			b.add(makePod("driver", inGroup("gang"), placedAt(began, 0)))
			b.keeps(tc.held)
			b.time = began.Add(9 * time.Minute)
			b.DeletePod(makePod("driver", inGroup("gang")))
			b.add(makePod("driver-2", inGroup("gang")))
			if view := b.turn(); view.Provision == nil || view.Provision.Last.IsZero() == tc.owes {
				t.Errorf("the next driver is to have room kept as by %+v; that it owes time is to be %t", view.Provision, tc.owes)
			}
		})
	}
}

// TestAMemberThatGoesLeavesRoomForTheOthers: one that came in time has fulfilled its purpose.
func TestAMemberThatGoesLeavesRoomForTheOthers(t *testing.T) {
	b := keeping(newBench())
	began := b.time
	at := func(minute int) { b.time = began.Add(time.Duration(minute) * time.Minute) }
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	for i, minute := range []int{0, 8, 16} {
		at(minute)
		b.add(makePod(string(rune('a'+i)), inGroup("gang"), cores("2"), placedAt(began, minute)))
	}
	at(17)
	b.DeletePod(makePod("b", inGroup("gang")))
	if got := b.rest(); got != 7 {
		t.Errorf("the rest is %d, want 7: what it was", got)
	}
	if due := b.gangs[gangName].provided.due; due != nil && !due.End.Equal(began.Add(26*time.Minute)) {
		t.Errorf("it is kept until %s, want 10 minutes after the last one came", due.End)
	}
	at(26)
	b.SeekRoom(gangName)
	if got := b.rest(); got != -1 {
		t.Errorf("after that the rest is %d, want none", got)
	}
}

// TestANewStartHasRoomKeptAnew: the Pods of the run before are gone.
func TestANewStartHasRoomKeptAnew(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	driver := makePod("driver", inGroup("gang"), cores("1"), onNode("node"))
	b.add(driver)
	b.EndProvision(gangName, "uid-of-group-gang")
	if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptExpired {
		t.Errorf("what is kept is %q, want expired", kept)
	}
	b.add(makePod("exec", inGroup("gang"), cores("2"), onNode("node")))
	if got := b.rest(); got != -1 {
		t.Errorf("a member that comes too late has room kept for %d cpu", got)
	}
	b.DeletePod(driver)
	b.DeletePod(makePod("exec", inGroup("gang")))
	b.add(makePod("driver-2", inGroup("gang"), cores("1")))
	if got := b.rest(); got != 13 {
		t.Errorf("the rest of the next run is %d, want 13", got)
	}
}

// TestWhoComesAfterAllHaveEndedStartsNoGangThatHasItsMinimum: members that have succeeded are of it. So the next one is
// placed wherever it fits, while a gang that lacks its minimum waits for all of its room.
func TestWhoComesAfterAllHaveEndedStartsNoGangThatHasItsMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		end   corev1.PodPhase
		waits bool
	}{
		"the driver has succeeded": {corev1.PodSucceeded, false},
		"the driver has failed":    {corev1.PodFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := keeping(newBench())
			b.SetGroup(makeGroup("gang", 1, asking("13")))
			b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node")))
			b.keeps(provision.Amounts{"cpu": 12_000})
			b.add(makePod("driver", inGroup("gang"), cores("1"), onNode("node"), inPhase(tc.end)))
			if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptGone {
				t.Errorf("what is kept is %q, want gone", kept)
			}
			next := makePod("next", inGroup("gang"), cores("1"))
			b.add(next)
			view := b.turn()
			if len(view.Waiting) != 1 || (view.Provision != nil) != tc.waits {
				t.Errorf("its turn is for %d members, with %+v to be kept; that they need room for all is to be %t", len(view.Waiting), view.Provision, tc.waits)
			}
			b.assumeAll(gangName, map[types.UID]string{next.UID: "node"})
			if got := b.rest(); got <= 0 {
				t.Errorf("once it is placed the rest is %d, want room for those that it may make", got)
			}
		})
	}
}

// TestRoomIsNotKeptForEverByReplacingMembers: all that come after the time is over have none kept, until after
// a pause as long as the time.
func TestRoomIsNotKeptForEverByReplacingMembers(t *testing.T) {
	b := keeping(newBench())
	began := b.time
	at := func(minute int) { b.time = began.Add(time.Duration(minute) * time.Minute) }
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	for i, minute := range []int{0, 9, 18, 27} {
		at(minute)
		b.add(makePod(string(rune('a'+i)), inGroup("gang"), cores("1"), placedAt(began, minute)))
	}
	b.keeps(provision.Amounts{"cpu": 1000})
	at(29)
	b.add(makePod("next", inGroup("gang"), cores("1"), gated))
	for _, name := range []string{"a", "b", "c", "d"} {
		b.DeletePod(makePod(name, inGroup("gang")))
	}
	b.add(makePod("next", inGroup("gang"), cores("1")))
	if view := b.turn(); view.Provision == nil || !view.Provision.Last.Equal(began.Add(30*time.Minute)) {
		t.Errorf("its turn is to seek %+v, want room for the minute that is left", view.Provision)
	}
	b.add(makePod("next", inGroup("gang"), cores("1"), placedAt(began, 29)))
	if got := b.rest(); got != 12 {
		t.Errorf("in the last minute the rest is %d, want 12", got)
	}
	b.keeps(provision.Amounts{"cpu": 1000})
	at(30)
	b.SeekRoom(gangName)
	if kept := b.Provides(gangName, "uid-of-group-gang"); kept != KeptExpired {
		t.Errorf("after that what is kept is %q, want expired", kept)
	}
	b.DeletePod(makePod("next", inGroup("gang")))
	b.add(makePod("third", inGroup("gang"), cores("1")))
	at(45)
	if view := b.turn(); view.Provision == nil || !view.Provision.Last.Equal(began.Add(60*time.Minute)) {
		t.Errorf("half of the pause later its turn is to seek %+v, want room for half the time", view.Provision)
	}
	at(60)
	b.add(makePod("third", inGroup("gang"), cores("1"), placedAt(began, 60)))
	if due := b.gangs[gangName].provided.due; due == nil || !due.Last.Equal(began.Add(90*time.Minute)) {
		t.Errorf("after the pause %+v is due, want room for all of the time", due)
	}
}

// TestTheNextRunOfWhatWasCompleteHasItsTime: while nothing is kept no time goes by.
func TestTheNextRunOfWhatWasCompleteHasItsTime(t *testing.T) {
	b := keeping(newBench())
	began := b.time
	b.SetGroup(makeGroup("gang", 1, asking("2")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), placedAt(began, 0)))
	b.keeps(provision.Amounts{"cpu": 1000})
	b.time = began.Add(time.Minute)
	b.add(makePod("exec", inGroup("gang"), cores("1"), placedAt(began, 1)))
	b.time = began.Add(5 * time.Hour)
	b.DeletePod(makePod("exec", inGroup("gang")))
	b.DeletePod(makePod("driver", inGroup("gang")))
	b.add(makePod("driver-2", inGroup("gang"), cores("1"), placedAt(began, 300)))
	if due := b.gangs[gangName].provided.due; due == nil || !due.Last.Equal(b.time.Add(30*time.Minute)) {
		t.Errorf("%+v is due, want room for half an hour", due)
	}
}

// TestALeaderWorkerSetSaysHowManyCome, on its Pods.
func TestALeaderWorkerSetSaysHowManyCome(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("8")))
	b.add(makePod("leader", inGroup("gang"), cores("2"), onNode("node"), func(w *schedulertesting.PodWrapper) {
		w.Annotation("leaderworkerset.sigs.k8s.io/size", "4")
	}))
	if got := b.gangs[gangName].provided.due.ToCome; got != 3 {
		t.Errorf("%d are to come, want 3", got)
	}
}

// TestAMemberWithGatesIsNotCounted: it neither takes of the rest nor says how large members are, until its gates go.
func TestAMemberWithGatesIsNotCounted(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), placedAt(b.time, 0)), makePod("later", inGroup("gang"), cores("8"), gated))
	if due := b.gangs[gangName].provided.due; b.rest() != 12 || due.Model.Name != "driver" {
		t.Errorf("the rest is %d with the model %s, want 12 with that of the driver", b.rest(), due.Model.Name)
	}
	b.add(makePod("later", inGroup("gang"), cores("8")))
	if due := b.gangs[gangName].provided.due; due.Model.Name != "later" {
		t.Errorf("without gates the model is %s, want the larger one", due.Model.Name)
	}
}

// TestAGroupThatIsMadeAnewHasRoomKeptForItsMembers, whose times are known already.
func TestAGroupThatIsMadeAnewHasRoomKeptForItsMembers(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("13")))
	b.add(makePod("driver", inGroup("gang"), cores("1"), placedAt(b.time, 0)))
	if got := b.rest(); got != 12 {
		t.Fatalf("the rest is %d, want 12", got)
	}
	again := makeGroup("gang", 1, asking("13"))
	again.UID = "another"
	b.DeleteGroup(makeGroup("gang", 1, asking("13")))
	b.SetGroup(again)
	if got := b.rest(); got != 12 {
		t.Errorf("of the group that is made anew the rest is %d, want 12", got)
	}
}

// TestALargeGangPaysNoMoreForAMemberThatChanges than a small one: all other gangs wait meanwhile.
func TestALargeGangPaysNoMoreForAMemberThatChanges(t *testing.T) {
	cost := func(members int) float64 {
		b := keeping(newBench())
		b.SetGroup(makeGroup("gang", 20_000, asking("13")))
		for i := range members {
			b.add(makePod(fmt.Sprint("worker-", i), inGroup("gang"), cores("1")))
		}
		last, changed := "worker-0", 0
		return testing.AllocsPerRun(20, func() {
			changed++
			b.add(makePod(last, inGroup("gang"), cores("1"), func(w *schedulertesting.PodWrapper) { w.Label("changed", fmt.Sprint(changed)) }))
		})
	}
	if small, large := cost(10), cost(2000); large > small+50 {
		t.Errorf("a change of one member costs %.0f allocations in a gang of 10, and %.0f in one of 2000", small, large)
	}
}

// TestTheLargestThatIsLeftIsTheModel when the largest member goes, shrinks or is of another scheduler.
func TestTheLargestThatIsLeftIsTheModel(t *testing.T) {
	b := keeping(newBench())
	b.SetGroup(makeGroup("gang", 1, asking("30")))
	b.add(makePod("small", inGroup("gang"), cores("1")), makePod("middle", inGroup("gang"), cores("2")), makePod("large", inGroup("gang"), cores("4")))
	model := func() string { return b.gangs[gangName].provided.due.Model.Name }
	b.add(makePod("large", inGroup("gang"), cores("4"), func(w *schedulertesting.PodWrapper) { w.Label("changed", "yes") }))
	if got := model(); got != "large" {
		t.Errorf("after a label the model is %s, want large", got)
	}
	b.add(makePod("large", inGroup("gang"), cores("1"), func(w *schedulertesting.PodWrapper) { w.Pod.Generation = 2 }))
	if got := model(); got != "middle" {
		t.Errorf("when the large one has shrunk the model is %s, want middle", got)
	}
	b.DeletePod(makePod("middle", inGroup("gang")))
	if got := model(); got != "large" {
		t.Errorf("of two of one size the model is %s, want the first by name", got)
	}
}
