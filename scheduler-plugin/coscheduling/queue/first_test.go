// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"
)

// wantFirst checks which of the gangs has the right to be helped, empty for none.
func (c *clocked) wantFirst(want string) {
	c.t.Helper()
	c.Next(c.now)
	for name := range c.ranks {
		if got := c.IsFirst(keyOf(name)); got != (name == want) {
			c.t.Errorf("%v after the start %s has the right to be helped: %t", c.now.Sub(start), name, got)
		}
	}
}

// refuseAll has all cycles come to nothing that there are now.
func (c *clocked) refuseAll() {
	c.t.Helper()
	for name := c.next(); name != ""; name = c.next() {
		c.refuse(Refusal{}, name)
	}
}

// waiting are gangs that were refused a while ago.
func waiting(t *testing.T, names ...string) *clocked {
	t.Helper()
	c := newClocked(t, names...)
	for range 3 {
		c.refuseAll()
		c.after(10 * time.Second)
	}
	c.refuseAll()
	return c
}

// cantBeHelped has a gang be told that it can't be helped for a time.
func (c *clocked) cantBeHelped(name string, d time.Duration) {
	c.t.Helper()
	c.Wake(keyOf(name), c.now)
	c.after(8 * time.Second)
	c.begin(name)
	c.Refused(keyOf(name), Refusal{Helpless: d}, terms, c.now)
}

// TestTheFirstOneIsHelpedInItsFirstTurn: it need not have been refused before.
func TestTheFirstOneIsHelpedInItsFirstTurn(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.wantFirst("")
	c.begin("a")
	c.wantFirst("a")
	c.refused("a", Refusal{})
	c.begin("b")
	c.wantFirst("a")
	c.refused("b", Refusal{})
}

func TestWhoIsNotHelped(t *testing.T) {
	tests := map[string]func(*clocked){
		"one that is out of the queue":            func(c *clocked) { c.Leave(keyOf("a"), c.now) },
		"one that has its minimum":                func(c *clocked) { c.Enter(c.ranks["a"], false, c.now) },
		"one whose minimum is placed":             func(c *clocked) { c.Wake(keyOf("a"), c.now); c.begin("a"); c.Placed(keyOf("a"), true, c.now) },
		"one whose members were not bound":        func(c *clocked) { c.Unbound(keyOf("a"), terms, c.now) },
		"one for which no room can be held":       func(c *clocked) { c.cantBeHelped("a", time.Minute) },
		"one that was never planned in the queue": func(c *clocked) { c.Forget(keyOf("a"), c.now); c.enter("a") },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := waiting(t, "a")
			c.wantFirst("a")
			c.after(10 * time.Second)
			happens(c)
			c.wantFirst("")
		})
	}
}

func TestThePassingOfTheRightToBeHelped(t *testing.T) {
	tests := map[string]func(*clocked){
		"when the first is placed":    func(c *clocked) { c.Wake(keyOf("a"), c.now); c.after(8 * time.Second); c.place("a") },
		"when the first leaves":       func(c *clocked) { c.Leave(keyOf("a"), c.now) },
		"when the first is forgotten": func(c *clocked) { c.Forget(keyOf("a"), c.now) },
		"when the first moves behind it": func(c *clocked) {
			rank := c.ranks["a"]
			rank.Priority = -1
			c.Rerank(rank, c.now)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := waiting(t, "a", "b")
			c.after(8 * time.Second)
			c.wantNext("")
			happens(c)
			c.wantFirst("b")
			c.wantNext("b") // at once, though it is in its back-off: no gang behind may take the room
			c.refuse(Refusal{}, "b")
			c.wantNext("")
		})
	}
}

// TestTheNextGangIsTriedAtOnceIfTheFirstCanNotBeHelped: otherwise the right would pass on once a minute.
func TestTheNextGangIsTriedAtOnceIfTheFirstCanNotBeHelped(t *testing.T) {
	c := waiting(t, "a", "b")
	c.after(8 * time.Second)
	c.cantBeHelped("a", 5*time.Minute)
	c.wantFirst("b")
	c.wantNext("b")
}

// TestAGangThatGetsTheRightDuringItsCycleIsTriedAgain: it was planned without the right.
func TestAGangThatGetsTheRightDuringItsCycleIsTriedAgain(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(Refusal{}, "a")
	c.begin("b")
	c.Leave(keyOf("a"), c.now)
	c.refused("b", Refusal{Again: c.now.Add(5 * time.Minute)})
	c.wantNext("b")
}

// TestAGangThatFitsIntoTheGapKeepsItsRight when a longer one, with which it waited, can't be helped.
func TestAGangThatFitsIntoTheGapKeepsItsRight(t *testing.T) {
	c := newClocked(t, "long", "short")
	c.runs = map[string]time.Duration{"short": time.Hour}
	c.refuse(Refusal{Shape: "x", Runs: 9 * time.Hour}, "long")
	c.alike("x", "short")
	c.after(time.Second)
	c.anything()
	c.refuse(Refusal{Shape: "x", Runs: 9 * time.Hour, Gap: 2 * time.Hour, Helpless: time.Hour}, "long")
	c.begin("short")
	c.wantFirst("short")
}

// TestTheOrderOfTheQueueDecidesWhoIsHelped: priority, then age.
func TestTheOrderOfTheQueueDecidesWhoIsHelped(t *testing.T) {
	c := waiting(t, "old", "young")
	c.wantFirst("old")
	c.rank("high", 1)
	c.enter("high")
	c.after(8 * time.Second)
	c.refuse(Refusal{}, "high")
	c.wantFirst("high")
	c.cantBeHelped("high", time.Minute)
	c.wantFirst("old")
	c.after(time.Minute)
	c.wantFirst("high")
}

func TestTheFirstOneIsNotPlannedMoreOftenBecauseOthersArePlaced(t *testing.T) {
	c := waiting(t, "a")
	c.after(9 * time.Second)
	for range 10 {
		c.enter("b")
		c.place("b")
		c.wantNext("")
		c.after(100 * time.Millisecond)
	}
}

// TestGangsAlikeGiveUpTheirRightTogether: if one of them can't be helped, none can, and the
// right goes to the next gang that is not like them.
func TestGangsAlikeGiveUpTheirRightTogether(t *testing.T) {
	c := newClocked(t, "a", "b", "c", "z")
	c.refuse(Refusal{Shape: "alike"}, "a")
	c.alike("alike", "b", "c")
	c.refuse(Refusal{}, "z")
	c.wantFirst("a")
	c.Wake(keyOf("a"), c.now)
	c.after(8 * time.Second)
	c.refuse(Refusal{Shape: "alike", Helpless: 5 * time.Minute}, "a")
	c.wantFirst("z")
}
