// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"slices"
	"testing"
	"time"
)

// cores is an event of a kind about cores.
func cores(kind EventKind, n int64) Event { return Event{Kind: kind, Room: Room{"cpu": n}} }

// ofCores is the need of members with a number of cores each.
func ofCores(members int, n int64) Need {
	return Need{Members: members, Smallest: Room{"cpu": n}, Least: Room{"cpu": n}}
}

func repeat(event Event, times int) []Event {
	events := make([]Event, times)
	for i := range events {
		events[i] = event
	}
	return events
}

// eventTests say of events whether the last one may help, and those before it may not.
var eventTests = map[string]struct {
	need   Need
	events []Event
	helps  bool
}{
	"anything may help":               {ofCores(4, 1), []Event{{Kind: Anything}}, true},
	"a kind that is not known may":    {ofCores(4, 1), []Event{{Kind: 99}}, true},
	"a Pod leaves room for a member":  {ofCores(1, 2), []Event{cores(PodEnded, 1)}, true},
	"a Pod leaves room for too few":   {ofCores(4, 2), []Event{cores(PodEnded, 5)}, false},
	"a Pod leaves room for enough":    {ofCores(4, 2), []Event{cores(PodEnded, 6)}, true},
	"Pods leave room together":        {ofCores(4, 2), repeat(cores(PodEnded, 1), 4), true},
	"Pods leave not enough together":  {ofCores(4, 2), repeat(cores(PodEnded, 1), 3), false},
	"a Pod leaves its place at least": {ofCores(2, 2), repeat(Event{Kind: PodEnded}, 2), true},
	"a Pod leaves a lot of what nobody needs": {
		ofCores(3, 2), []Event{{Kind: PodEnded, Room: Room{"gpu": 100}}}, false},
	"what counts is the resource of which most becomes free": {
		Need{Members: 3, Smallest: Room{"cpu": 10, "gpu": 1}}, []Event{{Kind: PodEnded, Room: Room{"cpu": 1, "gpu": 2}}}, true},
	"a Pod leaves what different members need": {
		Need{Members: 2, Smallest: Room{"cpu": 2, "memory": 2}}, []Event{{Kind: PodEnded, Room: Room{"cpu": 1, "memory": 1}}}, true},
	"a Pod leaves what all members need, for one of them": {
		Need{Members: 2, Smallest: Room{"cpu": 2, "memory": 2}, Least: Room{"cpu": 2, "memory": 2}},
		[]Event{{Kind: PodEnded, Room: Room{"cpu": 1, "memory": 1}}}, false},
	"a Pod leaves more than can be said": {
		ofCores(100, 1), []Event{{Kind: PodEnded, Unbounded: true}}, true},
	"a Pod leaves more than can be counted": {
		ofCores(100, 1), []Event{cores(PodEnded, math.MaxInt64)}, true},
	"a Pod takes less than nothing":             {ofCores(2, 1), []Event{cores(PodEnded, math.MinInt64)}, false},
	"a member that needs nothing has its place": {ofCores(2, 0), []Event{cores(PodEnded, 9)}, false},
	"a Pod ends where it is not only room":      {Need{}, []Event{cores(PodEnded, 1)}, true},

	"a node is large enough":                   {ofCores(100, 2), []Event{cores(NodeChanged, 2)}, true},
	"a node is too small":                      {ofCores(1, 2), []Event{cores(NodeChanged, 1)}, false},
	"a node lacks a resource":                  {ofCores(1, 2), []Event{{Kind: NodeChanged, Room: Room{"gpu": 8}}}, false},
	"a node changes where it is not only room": {Need{}, []Event{{Kind: NodeChanged, Cordoned: true}}, true},
	"a node is cordoned": {
		ofCores(1, 2), []Event{{Kind: NodeChanged, Room: Room{"cpu": 9}, Cordoned: true}}, false},
	"a node is cordoned, which members don't mind": {
		Need{Members: 1, Cordoned: true}, []Event{{Kind: NodeChanged, Cordoned: true}}, true},

	"a Pod is placed":                            {Need{}, []Event{{Kind: PodPlaced}}, false},
	"a Pod is placed, which is regarded":         {Need{Members: 9, RegardsOthers: true}, []Event{{Kind: PodPlaced}}, true},
	"a Pod is relabelled":                        {Need{}, []Event{{Kind: PodRelabelled}}, true},
	"a Pod is relabelled where room is missing":  {ofCores(4, 1), []Event{{Kind: PodRelabelled}}, true},
	"a Pod is relabelled, which is not regarded": {Need{Members: 4, IgnoresLabels: true}, []Event{{Kind: PodRelabelled}}, false},
	"a node goes":                                {ofCores(1, 1), []Event{{Kind: NodeGone}}, false},
	"a node goes, which is regarded":             {Need{Members: 9, RegardsOthers: true}, []Event{{Kind: NodeGone}}, true},
}

func TestAnEventHelpsAGangByItsNeed(t *testing.T) {
	for name, tc := range eventTests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.refuse(Refusal{Need: tc.need}, "a")
			c.after(time.Second)
			for _, event := range tc.events {
				c.wantNext("")
				c.happens(event)
			}
			want := map[bool]string{true: "a"}[tc.helps]
			c.wantNext(want)
		})
	}
}

// TestWhatHappensInATurnIsNotMissed: its plan may have been made before.
func TestWhatHappensInATurnIsNotMissed(t *testing.T) {
	for name, tc := range eventTests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.begin("a")
			for _, event := range tc.events {
				c.happens(event)
			}
			c.refused("a", Refusal{Need: tc.need})
			c.after(time.Second)
			want := map[bool]string{true: "a"}[tc.helps]
			c.wantNext(want)
		})
	}
}

// TestWhatHappensInATurnCountsWithWhatHappensAfterIt, or a gang would wait for more than it
// needs.
func TestWhatHappensInATurnCountsWithWhatHappensAfterIt(t *testing.T) {
	for name, tc := range eventTests {
		if len(tc.events) < 2 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.begin("a")
			c.happens(tc.events[0])
			c.refused("a", Refusal{Need: tc.need})
			c.after(time.Second)
			for _, event := range tc.events[1:] {
				c.wantNext("")
				c.happens(event)
			}
			want := map[bool]string{true: "a"}[tc.helps]
			c.wantNext(want)
		})
	}
}

func TestWhatHappensBeforeATurnDoesNotCountAfterIt(t *testing.T) {
	c := newClocked(t, "a")
	why := Refusal{Need: ofCores(2, 2)}
	c.refuse(why, "a")
	c.happens(cores(PodEnded, 1))
	c.after(time.Minute)
	c.refuse(why, "a")
	c.after(2 * time.Second)
	c.happens(cores(PodEnded, 1))
	c.wantNext("")
}

// TestWhatAGangHasDoneDoesNotHelpItself, but others.
func TestWhatAGangHasDoneDoesNotHelpItself(t *testing.T) {
	by := func(name string) Event { return Event{Kind: Anything, By: keyOf(name)} }
	c := newClocked(t, "a", "b")
	c.begin("a")
	c.happens(by("a"))
	c.refused("a", Refusal{})
	c.refuse(Refusal{}, "b")
	c.after(time.Second)
	c.wantNext("")
	c.happens(by("a"))
	c.refuse(Refusal{}, "b")
	c.wantNext("")
	c.happens(by("b"))
	c.begin("a")
	c.happens(by("b"))
	c.refused("a", Refusal{})
	c.wantUntil(2*time.Second, "a")
}

func TestMoreThanIsRememberedHappensInATurn(t *testing.T) {
	tests := map[string]struct {
		need  Need
		event Event
		want  string
	}{
		"nodes that are too small":      {ofCores(1, 2), cores(NodeChanged, 1), "a"},
		"Pods that end":                 {ofCores(2*mostMissed, 2), cores(PodEnded, 1), "a"},
		"Pods that are placed":          {ofCores(1, 2), Event{Kind: PodPlaced}, ""},
		"Pods that are placed near one": {Need{RegardsOthers: true}, Event{Kind: PodPlaced}, "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.begin("a")
			for range mostMissed + 1 {
				c.happens(tc.event)
			}
			if n := len(c.missed.events); n > mostMissed {
				t.Errorf("%d events are remembered", n)
			}
			c.refused("a", Refusal{Need: tc.need})
			c.after(time.Second)
			c.wantNext(tc.want)
		})
	}
}

func TestALineListensToWhatConcernsSomebody(t *testing.T) {
	c := newClocked(t, "a", "b")
	all := []EventKind{Anything, PodEnded, PodPlaced, NodeChanged, NodeGone}
	listens := func(want ...EventKind) {
		t.Helper()
		for _, kind := range all {
			if got := c.Listens(kind); got != slices.Contains(want, kind) {
				t.Errorf("the queue listens to kind %d: %t", kind, got)
			}
		}
	}
	listens()
	c.begin("a")
	listens(all...)
	c.refused("a", Refusal{})
	listens(Anything, PodEnded, NodeChanged)
	c.refuse(Refusal{Need: Need{RegardsOthers: true}}, "b")
	listens(all...)
	c.Leave(keyOf("b"), c.now)
	listens(Anything, PodEnded, NodeChanged)
	c.Forget(keyOf("a"), c.now)
	listens()
}

// TestRegardForOthersIsThatOfTheLastRefusal, as the members may have changed.
func TestRegardForOthersIsThatOfTheLastRefusal(t *testing.T) {
	c := newClocked(t, "a")
	for _, regards := range []bool{true, false, true} {
		c.refuse(Refusal{Shape: "x", Need: Need{Members: 1, RegardsOthers: regards}}, "a")
		if got := c.Listens(PodPlaced); got != regards {
			t.Errorf("the queue listens: %t, want %t", got, regards)
		}
		c.anything()
		c.after(8 * time.Second)
	}
}
