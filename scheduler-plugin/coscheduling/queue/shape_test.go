// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"
)

// alike has cycles of gangs end because one like them was refused.
func (c *clocked) alike(shape string, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.begin(name)
		if _, alike := c.RefuseAlike(keyOf(name), shape, c.runs[name], c.now); !alike {
			c.t.Fatalf("%s is to be planned, want it to be like one that was refused", name)
		}
	}
}

// unlike begins the cycle of a gang, and checks that it is to be planned.
func (c *clocked) unlike(shape, name string) {
	c.t.Helper()
	c.begin(name)
	if _, alike := c.RefuseAlike(keyOf(name), shape, 0, c.now); alike {
		c.t.Fatalf("%s is like one that was refused, want it to be planned", name)
	}
}

var x = Refusal{Shape: "x", Message: "no room for x"}

// four are four gangs of shape x, of which the first was refused and the others with it. The
// back-off of the first is over. None has a right to a reservation.
func four(t *testing.T) *clocked {
	t.Helper()
	c := newClocked(t, "a", "b", "c", "d")
	c.enough("a", "b", "c", "d")
	c.unlike("x", "a")
	c.refused("a", x)
	c.alike("x", "b", "c", "d")
	c.after(time.Second)
	c.wantNext("")
	return c
}

func TestGangsAlikeAreRefusedTogether(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(x, "a")
	c.begin("b")
	why, alike := c.RefuseAlike(keyOf("b"), "x", 0, c.now)
	if !alike || why.Message != x.Message {
		t.Errorf("a gang like one that was refused is told %q, %t", why.Message, alike)
	}
	if why, told := c.Told(keyOf("b")); !told || why.Message != x.Message {
		t.Errorf("it was told %q, %t", why.Message, told)
	}
	if failures := c.Failures(keyOf("b")); failures != 0 {
		t.Errorf("it has failed %d times, but was not planned", failures)
	}
}

func TestAGangIsPlannedThatIsLikeNoOther(t *testing.T) {
	c := newClocked(t, "a", "b", "c", "d")
	c.refuse(Refusal{}, "a")
	c.unlike("", "b")
	c.refused("b", Refusal{})
	c.refuse(x, "c")
	c.unlike("y", "d")
}

// TestAGangAheadIsPlannedItself: the resources may be reserved for gangs between the two.
func TestAGangAheadIsPlannedItself(t *testing.T) {
	c := newClocked(t, "b", "z")
	c.rank("a", 1)
	c.refuse(x, "b")
	c.enter("a")
	c.unlike("x", "a")
	c.refused("a", x)
	c.alike("x", "z")
}

// TestNobodyIsRefusedWithAGangWhoseTurnTookTooLong: the others may be planned in time.
func TestNobodyIsRefusedWithAGangWhoseTurnTookTooLong(t *testing.T) {
	c := newClocked(t, "one/a", "two/b")
	c.refuse(Refusal{Shape: "x", Took: time.Second, Overdue: true}, "one/a")
	c.unlike("x", "two/b")
}

func TestAnEventCostsOnePlanForEachShape(t *testing.T) {
	c := four(t)
	c.rank("e", -1)
	c.enter("e")
	c.refuse(Refusal{Shape: "y"}, "e")
	c.after(time.Second)
	for range 3 {
		c.anything()
		c.anything()
		c.unlike("x", "a")
		c.refused("a", x)
		c.unlike("y", "e")
		c.refused("e", Refusal{Shape: "y"})
		c.wantNext("")
		c.after(8 * time.Second)
	}
}

func TestTheNextOneIsTriedWhenOneLikeItIsPlaced(t *testing.T) {
	c := four(t)
	c.anything()
	c.place("a", "b")
	c.refuse(x, "c")
	c.wantNext("")
	c.anything()
	c.after(time.Second)
	c.place("c", "d")
}

// TestTheNextOneIsTriedWhenTheMinimumOfOneLikeItIsPlaced, though the rest of that waits.
func TestTheNextOneIsTriedWhenTheMinimumOfOneLikeItIsPlaced(t *testing.T) {
	c := four(t)
	c.anything()
	c.begin("a")
	c.Placed(keyOf("a"), true, c.now)
	c.wantNext("b")
	c.refused("a", Refusal{})
	c.wantNext("b")
}

func TestTheNextOneIsTriedWhenOneLikeItDoesNotShowWhetherThereIsRoom(t *testing.T) {
	leave := func(c *clocked) { c.Leave(keyOf("a"), c.now) }
	forget := func(c *clocked) { c.Forget(keyOf("a"), c.now) }
	tests := map[string]func(*clocked){
		"it leaves":                    leave,
		"it is forgotten":              forget,
		"it leaves in its cycle":       func(c *clocked) { c.begin("a"); leave(c); c.refused("a", x) },
		"it is forgotten in its cycle": func(c *clocked) { c.begin("a"); forget(c); c.refused("a", x) },
		"it is of another shape now":   func(c *clocked) { c.refuse(Refusal{Shape: "y"}, "a") },
		"it is like no other now":      func(c *clocked) { c.refuse(Refusal{}, "a") },
		"it is refused with another shape": func(c *clocked) {
			c.rank("0", 1)
			c.enter("0")
			c.refuse(Refusal{Shape: "y"}, "0")
			c.alike("y", "a")
		},
		"it could not be bound": func(c *clocked) { c.Unbound(keyOf("a"), terms, c.now) },
		"it is of another shape, and woken": func(c *clocked) {
			c.begin("a")
			c.Wake(keyOf("a"), c.now)
			c.refused("a", Refusal{Shape: "y"})
			c.refuse(Refusal{Shape: "y"}, "a") // early
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := four(t)
			c.anything()
			happens(c)
			c.unlike("x", "b")
			c.refused("b", x)
			c.alike("x")
			c.wantNext("")
		})
	}
}

// TestShorterGangsAreTriedWhenAGapHasGrown: room is needed for others, but only so late that gangs which run for less may use it
// now. When they were refused with a longer gang, the room was needed earlier.
func TestShorterGangsAreTriedWhenAGapHasGrown(t *testing.T) {
	const h = time.Hour
	c := newClocked(t, "a", "b", "c", "d", "e")
	c.runs = map[string]time.Duration{"b": 3 * h, "c": h, "d": 2 * h}
	c.refuse(Refusal{Shape: "x", Runs: 9 * h}, "a")
	c.alike("x", "b", "c", "d", "e")
	c.after(time.Second)
	c.anything()
	c.refuse(Refusal{Shape: "x", Runs: 9 * h, Gap: 2 * h}, "a")
	c.unlike("y", "c")
	c.refused("c", Refusal{Shape: "y", Runs: h, Gap: 30 * time.Minute})
	c.alike("y", "d")
	c.wantNext("")
}

// TestNobodyIsTriedBesideOneLikeIt, while that is still to be planned.
func TestNobodyIsTriedBesideOneLikeIt(t *testing.T) {
	tests := map[string]func(*clocked){
		"and something happens again": (*clocked).anything,
		"and an idle time is over":    func(c *clocked) { c.after(2 * idleAfter) },
		"and something happens in its cycle": func(c *clocked) {
			c.begin("a")
			c.anything()
			c.refused("a", x)
			c.after(2 * time.Second)
		},
		"and it changes": func(c *clocked) { c.enter("a") },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			c := four(t)
			c.anything()
			happens(c)
			c.refuse(x, "a")
			c.wantNext("")
		})
	}
}

func TestANewGangIsPlannedWhileOneLikeItIsInItsBackOff(t *testing.T) {
	c := four(t)
	c.anything()
	c.refuse(x, "a")
	c.enter("e")
	c.anything()
	c.refuse(x, "a") // early
	c.anything()
	c.unlike("x", "e")
	c.refused("e", x)
	c.after(4 * time.Second)
	c.refuse(x, "a")
	c.wantNext("")
	c.anything()
	c.after(8 * time.Second)
	c.place("a", "b", "c", "d", "e")
}

// TestAGangAheadShowsThatThereIsNoRoom for one that was to show it, too.
func TestAGangAheadShowsThatThereIsNoRoom(t *testing.T) {
	c := four(t)
	c.anything()
	c.rank("0", 1)
	c.enter("0")
	c.refuse(x, "0")
	c.alike("x", "a")
	c.wantNext("")
	c.after(time.Second)
	c.anything()
	c.place("0", "a", "b")
}

// TestWhatOneAheadNeedsIsNotForgotten when one behind it is refused, which may need more.
func TestWhatOneAheadNeedsIsNotForgotten(t *testing.T) {
	few, many := Refusal{Shape: "x", Need: ofCores(2, 2)}, Refusal{Shape: "x", Need: ofCores(9, 2)}
	c := newClocked(t, "a", "b")
	c.refuse(few, "a")
	c.happens(cores(PodEnded, 1))
	c.refuse(many, "b") // it was planned all the same
	c.after(time.Second)
	c.wantNext("")
	c.happens(cores(PodEnded, 1))
	c.wantNext("a")
}

// TestARefusalThatWasOldSaysNothingOfOthers: the gang had changed when it was refused, or
// something had happened.
func TestARefusalThatWasOldSaysNothingOfOthers(t *testing.T) {
	for name, happens := range map[string]func(*clocked){
		"something happened": (*clocked).anything,
		"the gang changed":   func(c *clocked) { c.enter("a") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a", "b")
			c.begin("a")
			happens(c)
			c.refused("a", x)
			c.begin("a") // early, as b is behind it
			c.refused("a", Refusal{})
			c.unlike("x", "b")
		})
	}
}

func TestWhatHappensInATurnOpensTheShape(t *testing.T) {
	c := four(t)
	c.enter("d")
	c.begin("d")
	c.anything()
	if _, alike := c.RefuseAlike(keyOf("d"), "x", 0, c.now); alike {
		t.Error("a gang is refused with others after something has happened that may help them")
	}
}

// TestAGangThatIsWokenInItsTurnIsPlanned: it may not be like the others any more.
func TestAGangThatIsWokenInItsTurnIsPlanned(t *testing.T) {
	c := four(t)
	c.enter("d")
	c.begin("d")
	c.enter("d")
	if _, alike := c.RefuseAlike(keyOf("d"), "x", 0, c.now); alike {
		t.Error("a gang that was woken is refused with others")
	}
}

// TestAGangThatMovesBackLeavesItToTheOneAheadToTry, also in its cycle.
func TestAGangThatMovesBackLeavesItToTheOneAheadToTry(t *testing.T) {
	back := func(c *clocked) {
		a := c.ranks["a"]
		a.Priority = -1
		c.Rerank(a, c.now)
	}
	t.Run("before its cycle", func(t *testing.T) {
		c := four(t)
		c.anything()
		back(c)
		c.unlike("x", "b")
		c.refused("b", x)
		c.alike("x", "a")
		c.wantNext("")
	})
	t.Run("in its cycle", func(t *testing.T) {
		c := four(t)
		c.anything()
		c.begin("a")
		c.anything()
		back(c)
		c.refused("a", x)
		c.unlike("x", "b")
		c.refused("b", x)
	})
}

// TestAGangTakesOverTheBackOffOfOneLikeIt, or many would have as many cycles as if none did.
func TestAGangTakesOverTheBackOffOfOneLikeIt(t *testing.T) {
	c := four(t)
	c.anything()
	c.refuse(x, "a")
	c.anything()
	c.Leave(keyOf("a"), c.now)
	c.wantUntil(2*time.Second, "b")
}

// TestAGangWaitsNoLongerThanItsOwnBackOffForOneLikeIt that was refused often: it is new, and
// by itself would be tried in the shortest back-off when something happens that may help.
func TestAGangWaitsNoLongerThanItsOwnBackOffForOneLikeIt(t *testing.T) {
	often := func(t *testing.T) *clocked {
		c := newClocked(t, "a", "a2")
		c.enough("a", "a2")
		c.refuse(x, "a")
		c.alike("x", "a2")
		for range 5 {
			c.after(terms.Longest)
			c.anything()
			c.refuse(x, "a")
		}
		return c
	}
	t.Run("that waits as well", func(t *testing.T) {
		c := often(t)
		c.enter("b")
		c.alike("x", "b")
		for _, backOff := range []time.Duration{1, 2, 4, 8, 8} {
			c.anything()
			c.wantUntil(backOff*time.Second, "a")
			c.refuse(x, "a")
		}
		c.enter("c")
		c.alike("x", "c")
		c.anything()
		c.wantUntil(time.Second, "a")
		c.place("a", "a2", "b", "c")
	})
	t.Run("that is gone", func(t *testing.T) {
		c := often(t)
		c.enter("b")
		c.alike("x", "b")
		c.anything()
		c.Forget(keyOf("a"), c.now)
		c.wantUntil(time.Second, "a2")
		c.place("a2", "b")
	})
	t.Run("that is to be tried already", func(t *testing.T) {
		c := often(t)
		c.anything()
		c.enter("b")
		c.wantNext("a") // early
		c.refuse(x, "a")
		c.anything()
		c.unlike("x", "b")
		c.refused("b", x)
		c.wantUntil(time.Second, "a")
	})
}

// TestAGangThatChangesAgainAndAgainDoesNotShortenABackOff, or who changes a gang each second
// would have those like it planned each second.
func TestAGangThatChangesAgainAndAgainDoesNotShortenABackOff(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(x, "a")
	c.alike("x", "b")
	for range 5 {
		c.after(terms.Longest)
		c.anything()
		c.refuse(x, "a")
		c.enter("b")
		c.alike("x", "b")
	}
	c.anything()
	c.wantUntil(terms.Longest, "a")
}

func TestAGangThatTakesOverABackOffHasOneEarlyTurnInTheShortest(t *testing.T) {
	c := four(t)
	c.anything()
	c.refuse(x, "a")
	c.anything()
	c.Leave(keyOf("a"), c.now)
	c.enter("e")
	c.refuse(x, "b") // early
	c.anything()
	c.wantNext("e")
}

// TestGangsAlikeHaveOneTurnThoughNothingHappens, whoever of them is left.
func TestGangsAlikeHaveOneTurnThoughNothingHappens(t *testing.T) {
	c := newClocked(t, "a", "b", "c")
	c.enough("a", "b", "c")
	c.refuse(x, "a")
	c.alike("x", "b", "c")
	c.wantUntil(idleAfter, "a")
	c.unlike("x", "a")
	c.refused("a", x)
	c.Leave(keyOf("a"), c.now)
	c.wantUntil(idleAfter, "b")
	c.unlike("x", "b")
	c.refused("b", x)
	b := c.ranks["b"]
	b.Priority = -1
	c.Rerank(b, c.now)
	c.wantUntil(idleAfter, "c")
	c.unlike("x", "c")
	c.refused("c", x)
	c.Forget(keyOf("c"), c.now)
	c.wantUntil(idleAfter, "b")
}

// TestAGangInDebtKeepsNobodyLikeItWaiting: its namespace took too much time, not theirs.
func TestAGangInDebtKeepsNobodyLikeItWaiting(t *testing.T) {
	long := Refusal{Took: 2 * time.Second, Overdue: true}
	debt := func(t *testing.T) *clocked {
		c := newClocked(t, "one/a", "two/b", "one/z")
		c.rank("two/0", 1)
		c.refuse(long, "one/a")
		c.refuse(Refusal{}, "two/b")
		c.after(18 * time.Second)
		c.enter("two/0")
		c.enough("one/a", "two/b")
		c.refuse(x, "two/0")
		c.alike("x", "one/a", "two/b")
		c.Forget(keyOf("two/0"), c.now)
		return c
	}
	t.Run("that is there", func(t *testing.T) {
		c := debt(t)
		c.refuse(long, "one/z")
		c.after(time.Second)
		c.anything()
		c.wantNext("two/b")
	})
	t.Run("that comes when it is to show whether there is room", func(t *testing.T) {
		c := debt(t)
		c.rank("two/1", 1)
		c.enter("two/1")
		c.anything()
		c.wantNext("two/1")
		c.Leave(keyOf("two/1"), c.now)
		c.rank("one/1", 1)
		c.enter("one/1")
		c.refuse(long, "one/1")
		c.after(time.Second)
		c.Leave(keyOf("one/z"), c.now)
		c.wantNext("two/b")
	})
}

// TestAShapeIsForgottenWithItsGangs, or memory would grow with all that ever waited.
func TestAShapeIsForgottenWithItsGangs(t *testing.T) {
	c := four(t)
	c.anything()
	c.place("a", "b")
	c.refuse(x, "c")
	c.Leave(keyOf("c"), c.now)
	c.Forget(keyOf("d"), c.now)
	if n := len(c.shapes.all) + len(c.shapes.named) + len(c.shapes.regarding); n > 0 {
		t.Errorf("%d shapes are left with which nobody waits", n)
	}
}
