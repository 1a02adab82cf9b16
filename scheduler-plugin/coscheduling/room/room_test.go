// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"sync"
	"testing"
	"time"

	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// gangsOf are the names of the gangs that have claims, in order.
func gangsOf(claims []Claim) string {
	var names []string
	for _, c := range claims {
		names = append(names, c.Gang().Rank.Key.Name)
	}
	return fmt.Sprint(names)
}

func TestAGangHasOneClaim(t *testing.T) {
	var room Room
	owner := gang("gang", 0, 0)
	if got := room.Of(owner.Rank.Key); got != nil {
		t.Fatalf("before anything is kept there is %v", got)
	}
	first := NewVacancy(owner, coresOn(t, "a", "member", 2), nil, noon)
	if left := room.Keep(first); left != nil {
		t.Errorf("the first claim has left %v", left)
	}
	again := NewReservation(owner, coresOn(t, "a", "other-member", 2), nil, noon)
	if left := room.Keep(again); left != nil {
		t.Errorf("others may have %v, which is where the gang is to go still", left)
	}
	fewer := NewReservation(owner, coresOn(t, "a", "member", 1), nil, noon)
	if left := room.Keep(fewer); left != again {
		t.Errorf("others may have %v, want all that was kept before", left)
	}
	if got := room.Of(owner.Rank.Key); got != fewer {
		t.Errorf("kept is %v, want the last claim", got)
	}
	if got := room.Drop(owner.Rank.Key); got != fewer {
		t.Errorf("dropped is %v, want the last claim", got)
	}
	if got := room.Drop(owner.Rank.Key); got != nil {
		t.Errorf("dropped again is %v", got)
	}
}

// TestAClaimIsLeftToThoseWhoAreAheadOnlyNow: it is where it was, but its gang has fallen behind.
func TestAClaimIsLeftToThoseWhoAreAheadOnlyNow(t *testing.T) {
	var room Room
	before := NewVacancy(gang("gang", 9, 0), coresOn(t, "a", "member", 1), nil, noon)
	room.Keep(before)
	if left := room.Keep(NewVacancy(gang("gang", 5, 0), coresOn(t, "a", "member", 1), nil, noon)); left != before {
		t.Errorf("left is %v, want what was kept from more gangs", left)
	}
	if left := room.Keep(NewVacancy(gang("gang", 7, 0), coresOn(t, "a", "member", 1), nil, noon)); left != nil {
		t.Errorf("left is %v, though it is kept from more gangs now", left)
	}
}

// TestAClaimThatIsOverDoesNotEndANewerOne: between the look at it and its end the gang has
// got another.
func TestAClaimThatIsOverDoesNotEndANewerOne(t *testing.T) {
	var room Room
	owner := gang("gang", 0, 0)
	room.Keep(NewVacancy(owner, coresOn(t, "a", "member", 1), nil, noon))
	over := room.Expired(noon.Add(time.Second))
	newer := NewReservation(owner, coresOn(t, "a", "member", 1), nil, noon)
	room.Keep(newer)
	for _, claim := range over {
		if room.End(claim) {
			t.Error("the claim that is over was still there")
		}
	}
	if room.Of(owner.Rank.Key) != newer {
		t.Error("the newer claim has ended")
	}
	if !room.End(newer) || room.Of(owner.Rank.Key) != nil {
		t.Error("the newer claim does not end")
	}
}

func TestClaimsInOrder(t *testing.T) {
	var room Room
	for i, owner := range []Gang{gang("young", 5, 9), gang("low", 0, 0), gang("high", 9, 9), gang("old", 5, 1)} {
		room.Keep(NewReservation(owner, nil, nil, noon))
		room.Keep(NewVacancy(owner, nil, nil, noon.Add(time.Duration(i)*time.Minute)))
	}
	if got, want := gangsOf(room.InOrder()), "[high old young low]"; got != want {
		t.Errorf("in order are %s, want %s", got, want)
	}
	if got, want := gangsOf(room.AheadOfGang(Behind{Rank: gang("new", 4, 0).Rank})), "[high old young]"; got != want {
		t.Errorf("ahead are %s, want %s", got, want)
	}
	// Those of the first two ended at noon and a minute later.
	if got, want := gangsOf(room.Expired(noon.Add(time.Minute))), "[young]"; got != want {
		t.Errorf("a minute after noon there have expired %s, want %s", got, want)
	}
	if got, want := gangsOf(room.Expired(noon.Add(time.Minute+1))), "[young low]"; got != want {
		t.Errorf("just after that there have expired %s, want %s", got, want)
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
	request := jobs[0].CalculateResource().Resource
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				room.MayTake(pod, request, node)
				evictions.IsLeaving(pod, noon)
				for _, claim := range room.Expired(noon.Add(time.Hour)) {
					room.End(claim)
				}
			}
		})
	}
	for range 200 {
		room.Keep(NewBarrier(gang("gang", 0, 0), member, infos(jobs), time.Minute, noon))
		evictions.Add(coresPods(jobs), noon)
	}
	all.Wait()
}
