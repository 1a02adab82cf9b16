// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// gangsOf are the names of the gangs that have claims, in order.
func gangsOf(claims []*Reservation) string {
	var names []string
	for _, c := range claims {
		names = append(names, c.Gang.Rank.Key.Name)
	}
	return fmt.Sprint(names)
}

func TestAGangHasOneReservation(t *testing.T) {
	var room Room
	owner := gang("gang", 0, 0)
	if got := room.Of(owner.Rank.Key); got != nil {
		t.Fatalf("before anything is kept there is %v", got)
	}
	first := vacant(owner, coresOn(t, "a", "member", 2), nil, noon)
	if left := room.Keep(first); left != nil {
		t.Errorf("the first claim has left %v", left)
	}
	again := evicting(owner, coresOn(t, "a", "other-member", 2), nil, noon)
	if left := room.Keep(again); left != nil {
		t.Errorf("others may have %v, which is where the gang is to go still", left)
	}
	fewer := evicting(owner, coresOn(t, "a", "member", 1), nil, noon)
	if left := room.Keep(fewer); left != again {
		t.Errorf("others may have %v, want all that was kept before", left)
	}
	if got := room.Of(owner.Rank.Key); got != fewer {
		t.Errorf("kept is %v, want the last claim", got)
	}
	if !room.End(fewer) || room.End(fewer) {
		t.Error("it does not end once")
	}
}

// TestWhatAReservationNoLongerTakesIsLeft, though it stays on its node with as many members.
func TestWhatAReservationNoLongerTakesIsLeft(t *testing.T) {
	var room Room
	of := func(cores string) *Reservation {
		return vacant(gang("gang", 0, 0), []*framework.PodInfo{podOn(t, "a", "member-0", amounts{cpu: cores})}, nil, noon)
	}
	before := of("2")
	room.Keep(before)
	if left := room.Keep(of("1")); left != before {
		t.Errorf("left is %v, want what was kept of two cores", left)
	}
}

// TestAReservationIsLeftToThoseWhoAreAheadOnlyNow: it is where it was, but its gang has fallen behind.
func TestAReservationIsLeftToThoseWhoAreAheadOnlyNow(t *testing.T) {
	var room Room
	before := vacant(gang("gang", 9, 0), coresOn(t, "a", "member", 1), nil, noon)
	room.Keep(before)
	if left := room.Keep(vacant(gang("gang", 5, 0), coresOn(t, "a", "member", 1), nil, noon)); left != before {
		t.Errorf("left is %v, want what was kept from more gangs", left)
	}
	if left := room.Keep(vacant(gang("gang", 7, 0), coresOn(t, "a", "member", 1), nil, noon)); left != nil {
		t.Errorf("left is %v, though it is kept from more gangs now", left)
	}
}

// TestOthersHearOfAReservationThatIsNeededMuchLater, and not of each moment for which work overruns its estimate.
func TestOthersHearOfAReservationThatIsNeededMuchLater(t *testing.T) {
	var room Room
	owner, members := gang("gang", 5, 0), coresOn(t, "a", "member", 1)
	reserved := func(minute int, from time.Duration) *Reservation {
		r := New(owner, InTime, members, nil, noon.Add(time.Hour))
		if r.seen = noon.Add(time.Duration(minute) * time.Minute); from > 0 {
			r.From = noon.Add(from)
		}
		return r
	}
	for _, step := range []struct {
		at    int
		from  time.Duration
		hears bool
	}{
		{0, 100 * time.Minute, false},
		{1, 101 * time.Minute, false}, {2, 105 * time.Minute, false}, {3, 110 * time.Minute, true}, // a tenth after it was 100 min
		{4, 111 * time.Minute, false}, {5, 90 * time.Minute, false},
		{6, 0, false}, {7, 112 * time.Minute, true}, // nobody knew for a while
	} {
		if left := room.Keep(reserved(step.at, step.from)); (left != nil) != step.hears {
			t.Errorf("minute %d, needed from %v on: others hear of it: %t, want %t", step.at, step.from, left != nil, step.hears)
		}
	}
}

// TestAReservationThatIsOverDoesNotEndANewerOne: between the look at it and its end the gang has
// got another.
func TestAReservationThatIsOverDoesNotEndANewerOne(t *testing.T) {
	var room Room
	owner := gang("gang", 0, 0)
	room.Keep(vacant(owner, coresOn(t, "a", "member", 1), nil, noon))
	over := room.InOrder()
	newer := evicting(owner, coresOn(t, "a", "member", 1), nil, noon)
	room.Keep(newer)
	if room.End(over[0]) || room.Of(owner.Rank.Key) != newer {
		t.Error("the newer reservation has ended")
	}
	if !room.End(newer) || room.Of(owner.Rank.Key) != nil {
		t.Error("the newer reservation does not end")
	}
}

func TestReservationsInOrder(t *testing.T) {
	var room Room
	for _, owner := range []Gang{gang("young", 5, 9), gang("low", 0, 0), gang("high", 9, 9), gang("old", 5, 1)} {
		room.Keep(evicting(owner, nil, nil, noon))
		room.Keep(vacant(owner, nil, nil, noon))
	}
	if got, want := gangsOf(room.InOrder()), "[high old young low]"; got != want {
		t.Errorf("in order are %s, want %s", got, want)
	}
	if got, want := gangsOf(room.KeptFrom(GangTaker(gang("new", 4, 0).Rank, false, time.Time{}))), "[high old young]"; got != want {
		t.Errorf("ahead are %s, want %s", got, want)
	}
	if n := len(room.InOrder()); n != 4 {
		t.Errorf("%d are left after the question, want all", n)
	}
}

// TestRoomIsReadWhileItChanges: the runtime ends a program that does so with a map of its own.
func TestRoomIsReadWhileItChanges(t *testing.T) {
	var room Room
	var evictions Evictions
	pod := schedulertesting.MakePod().Name("ordinary").UID("uid").Priority(-1).Obj()
	node, jobs, member := nodeWith("a", amounts{cpu: "8"}), coresOn(t, "a", "job", 1), coresOn(t, "a", "member", 1)
	request := TakesOf(jobs[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				room.MayTake(PodTaker(pod, time.Time{}), request, node)
				evictions.IsLeaving(pod, noon)
				for _, claim := range room.InOrder() {
					room.End(claim)
				}
			}
		})
	}
	for range 200 {
		room.Keep(New(gang("gang", 0, 0), InTime, member, infos(jobs), noon))
		evictions.Add(coresPods(jobs), noon)
	}
	all.Wait()
}
