// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"fmt"
	"testing"
	"time"
)

// starving checks which of gangs has the right to be helped, empty for none.
func (c *clocked) starving(want string) {
	c.t.Helper()
	for name := range c.ranks {
		if got := c.Starves(keyOf(name), c.now); got != (name == want) {
			c.t.Errorf("%v after the start %s has the right to be helped: %t", c.now.Sub(start), name, got)
		}
	}
}

// hungry are gangs that are refused, whose patience of five minutes is over.
func hungry(t *testing.T, names ...string) *clocked {
	t.Helper()
	c := newClocked(t, names...)
	c.refusePatient(Refusal{}, names...)
	c.hunger()
	return c
}

// hunger lets five minutes pass, with turns that come to nothing.
func (c *clocked) hunger() {
	c.t.Helper()
	for range 30 {
		c.after(patient.Patience / 30)
		c.refuseAll()
	}
}

// refuseAll has all turns come to nothing that there are now.
func (c *clocked) refuseAll() {
	c.t.Helper()
	for name := c.next(); name != ""; name = c.next() {
		c.refusePatient(Refusal{}, name)
	}
}

func TestAGangStarvesAfterItsPatience(t *testing.T) {
	c := newClocked(t, "a")
	c.refusePatient(Refusal{}, "a")
	c.after(patient.Patience - time.Nanosecond)
	c.starving("")
	c.after(time.Nanosecond)
	c.starving("a")
}

func TestAGangThatBeginsToStarveIsReady(t *testing.T) {
	c := newClocked(t, "a")
	c.refusePatient(Refusal{}, "a")
	for _, minute := range []int{1, 2, 3, 4} {
		c.wantUntil(time.Minute, "a")
		c.after(time.Duration(minute) * time.Second)
		c.refusePatient(Refusal{}, "a")
	}
	c.wantUntil(50*time.Second, "a")
	c.begin("a")
	c.starving("a")
	c.Refused(keyOf("a"), Refusal{}, patient, c.now)
	c.wantUntil(time.Minute, "a") // once
}

func TestWhoDoesNotStarve(t *testing.T) {
	tests := map[string]func(*clocked){
		"one that is out of line":            func(c *clocked) { c.Leave(keyOf("a"), c.now) },
		"one that has its minimum":           func(c *clocked) { c.Enter(c.ranks["a"], false, c.now) },
		"one whose minimum is placed":        func(c *clocked) { c.Wake(keyOf("a"), c.now); c.begin("a"); c.Placed(keyOf("a"), true, c.now) },
		"one that has given up":              func(c *clocked) { c.GiveUpHelp(keyOf("a"), time.Minute, c.now) },
		"one whose members were not bound":   func(c *clocked) { c.Unbound(keyOf("a"), patient, c.now) },
		"one that has had its minimum bound": func(c *clocked) { c.Settled(keyOf("a"), c.now) },
		"one for which no room can be held": func(c *clocked) {
			c.Wake(keyOf("a"), c.now)
			c.begin("a")
			c.Refused(keyOf("a"), Refusal{Helpless: time.Minute}, patient, c.now)
		},
		"one that has no patience set": func(c *clocked) {
			c.Wake(keyOf("a"), c.now)
			c.refuse(Refusal{}, "a")
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := hungry(t, "a")
			c.starving("a")
			c.after(10 * time.Second)
			happens(c)
			c.starving("")
		})
	}
}

func TestAGangThatWasNeverRefusedDoesNotStarve(t *testing.T) {
	c := newClocked(t, "a")
	c.Begin(keyOf("a"), c.now.Add(-time.Hour), c.now)
	c.starving("")
	c.Refused(keyOf("a"), Refusal{}, patient, c.now)
	c.starving("a")
}

func TestOneGangAtATimeStarves(t *testing.T) {
	c := hungry(t, "a", "b")
	c.starving("a")
	c.Wake(keyOf("a"), c.now)
	c.after(8 * time.Second)
	c.place("a")
	c.begin("b") // it is made ready for it
	c.starving("b")
}

func TestThePassingOfTheRightToBeHelped(t *testing.T) {
	tests := map[string]func(*clocked){
		"when the first gives it up":     func(c *clocked) { c.GiveUpHelp(keyOf("a"), patient.Patience, c.now) },
		"when the first leaves":          func(c *clocked) { c.Leave(keyOf("a"), c.now) },
		"when the first is forgotten":    func(c *clocked) { c.Forget(keyOf("a"), c.now) },
		"when the first has its minimum": func(c *clocked) { c.Enter(c.ranks["a"], false, c.now); c.refusePatient(Refusal{}, "a") },
		"when the first can't be helped": func(c *clocked) {
			c.Wake(keyOf("a"), c.now)
			c.begin("a")
			c.Refused(keyOf("a"), Refusal{Helpless: patient.Patience}, patient, c.now)
		},
		"when the first moves behind it": func(c *clocked) {
			rank := c.ranks["a"]
			rank.Priority = -1
			c.Rerank(rank, c.now)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := hungry(t, "a", "b")
			c.after(8 * time.Second)
			c.wantNext("")
			happens(c)
			c.begin("b")
			c.starving("b")
			c.Refused(keyOf("b"), Refusal{}, patient, c.now)
			c.wantNext("")
		})
	}
}

func TestAGangThatGaveUpIsHelpedAgainLater(t *testing.T) {
	c := hungry(t, "a", "b")
	c.GiveUpHelp(keyOf("a"), 30*time.Second, c.now)
	c.after(8 * time.Second)
	c.refusePatient(Refusal{}, "b")
	c.starving("b")
	c.now = c.now.Add(22 * time.Second)
	c.wantNext("") // it is the turn of b as long as that has not given up
	c.GiveUpHelp(keyOf("b"), time.Minute, c.now)
	c.begin("a")
	c.starving("a")
}

// TestTheOldestDoNotHaveAllTheHelp: two that wait for what does not end would take turns for ever, and younger
// gangs had none.
func TestTheOldestDoNotHaveAllTheHelp(t *testing.T) {
	c := hungry(t, "a", "b", "c")
	for _, first := range []string{"a", "b", "c", "a"} {
		c.wantHelped(first)
		c.GiveUpHelp(keyOf(first), patient.Patience, c.now)
		c.hunger()
	}
}

// TestThoseThatComeDoNotKeepHelpFromWhoIsThere: a gang that was helped in vain is helped again, however many come,
// and they are before it is a third time.
func TestThoseThatComeDoNotKeepHelpFromWhoIsThere(t *testing.T) {
	c := hungry(t, "a", "b")
	for i, first := range []string{"a", "b", "a", "b", "new-0"} {
		c.wantHelped(first)
		c.GiveUpHelp(keyOf(first), patient.Patience, c.now)
		c.enter(fmt.Sprint("new-", i))
		c.hunger()
	}
}

// wantHelped checks which gang has the right to be helped.
func (c *clocked) wantHelped(want string) {
	c.t.Helper()
	c.tick(c.now)
	if g := c.entitled(); g == nil || g.rank.Key != keyOf(want) {
		c.t.Fatalf("%+v has the right to be helped, want %s", g, want)
	}
}

// TestAGangOfHigherPriorityThatWaits keeps others from being helped: the room would be its.
func TestAGangOfHigherPriorityThatWaits(t *testing.T) {
	tests := map[string]struct {
		priority int32
		happens  func(*clocked)
		helped   bool
	}{
		"is helped first":                  {1, func(*clocked) {}, false},
		"of the same priority does not":    {0, func(*clocked) {}, true},
		"does not once it has its place":   {1, func(c *clocked) { c.enter("high"); c.after(time.Second); c.place("high") }, true},
		"does not once it has left":        {1, func(c *clocked) { c.Leave(keyOf("high"), c.now) }, true},
		"does not once it is forgotten":    {1, func(c *clocked) { c.Forget(keyOf("high"), c.now) }, true},
		"does not once it can't be helped": {1, func(c *clocked) { c.GiveUpHelp(keyOf("high"), time.Minute, c.now) }, true},
		"does not once it has its minimum": {1, func(c *clocked) {
			c.Enter(c.ranks["high"], false, c.now)
			c.after(time.Second)
			c.refusePatient(Refusal{}, "high")
		}, true},
		"does not once it can't be bound": {1, func(c *clocked) { c.Unbound(keyOf("high"), terms, c.now) }, true},
		"does not once it is of lower":    {1, func(c *clocked) { rank := c.ranks["high"]; rank.Priority = 0; c.Rerank(rank, c.now) }, true},
	}
	for name, tc := range tests {
		t.Run("that "+name, func(t *testing.T) {
			c := hungry(t, "low")
			c.rank("high", tc.priority)
			c.enter("high")
			c.refuseAll()
			c.after(8 * time.Second)
			c.wantNext("")
			tc.happens(c)
			if !tc.helped {
				c.starving("")
				return
			}
			c.starving("low")
			if tc.priority > 0 {
				c.wantNext("low") // it is made ready for it
			}
		})
	}
}

func TestAGangThatStarvesIsNotPlannedMoreOftenBecauseOthersArePlaced(t *testing.T) {
	c := hungry(t, "a")
	c.after(9 * time.Second)
	for range 10 {
		c.enter("b")
		c.place("b")
		c.wantNext("")
		c.after(100 * time.Millisecond)
	}
}

// TestAGangThatWasRefusedWithOthersStarvesToo, when those before it have given up or left.
func TestAGangThatWasRefusedWithOthersStarvesToo(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refusePatient(x, "a")
	c.alike("x", "b")
	c.Leave(keyOf("a"), c.now)
	c.after(patient.Patience)
	c.starving("b")
}

func TestAGangThatBeginsToStarveInItsTurnIsHelped(t *testing.T) {
	c := newClocked(t, "a")
	c.refusePatient(Refusal{}, "a")
	c.after(patient.Patience - time.Second)
	c.begin("a")
	c.starving("")
	c.after(2 * time.Second)
	c.wantNext("")
	c.Refused(keyOf("a"), Refusal{}, patient, c.now)
	c.wantUntil(2*time.Second, "a") // after its back-off
	c.begin("a")
	c.starving("a")
}

// TestAGangIsHelpedInTheTurnInWhichItAsks, and has no other one for it.
func TestAGangIsHelpedInTheTurnInWhichItAsks(t *testing.T) {
	c := newClocked(t, "a")
	c.refusePatient(Refusal{}, "a")
	c.after(patient.Patience - time.Second)
	c.begin("a")
	c.after(time.Second)
	c.starving("a")
	c.Refused(keyOf("a"), Refusal{}, patient, c.now)
	c.wantUntil(time.Minute, "a")
}

func TestAGangThatGaveUpForAMomentIsMadeReadyAfterIt(t *testing.T) {
	c := hungry(t, "a")
	c.GiveUpHelp(keyOf("a"), time.Second, c.now)
	c.after(8 * time.Second)
	c.wantNext("a")
}

// TestGangsAlikeGiveUpTheirRightTogether: if one of them can't be helped, none can, and the
// right goes to the next gang that is not like them.
func TestGangsAlikeGiveUpTheirRightTogether(t *testing.T) {
	c := newClocked(t, "a", "b", "c", "z")
	alike := Refusal{Shape: "alike"}
	c.refusePatient(alike, "a", "b", "c")
	c.refusePatient(Refusal{}, "z")
	for range 30 {
		c.after(patient.Patience / 30)
		for name := c.next(); name != ""; name = c.next() {
			if name == "z" {
				c.refusePatient(Refusal{}, "z")
			} else {
				c.refusePatient(alike, name)
			}
		}
	}
	c.starving("a")
	c.Wake(keyOf("a"), c.now)
	c.after(time.Minute)
	c.begin("a")
	c.Refused(keyOf("a"), Refusal{Shape: "alike", Helpless: patient.Patience}, patient, c.now)
	c.starving("z")
}

// TestAGangWithoutPatienceKeepsNobodyFromBeingHelped, though it has a higher priority: it never starves itself.
func TestAGangWithoutPatienceKeepsNobodyFromBeingHelped(t *testing.T) {
	c := hungry(t, "a")
	high := keyOf("high")
	c.Enter(Rank{Key: high, Priority: 10}, true, c.now)
	c.begin("high")
	c.Refused(high, Refusal{}, Terms{}, c.now)
	c.starving("a")
}
