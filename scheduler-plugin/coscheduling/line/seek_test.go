// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"fmt"
	"testing"
	"time"
)

// seek has gangs be in line for room for members to come.
func (c *clocked) seek(names ...string) {
	for _, name := range names {
		if _, known := c.ranks[name]; !known {
			c.rank(name, 0)
		}
		c.Seek(c.ranks[name], c.now)
	}
}

// sought has a gang have its turn in which room is sought, for so long.
func (c *clocked) sought(name string, took time.Duration) {
	c.t.Helper()
	c.begin(name)
	c.after(took)
	c.Sought(keyOf(name), took, c.now)
}

// TestRoomIsSoughtLessAndLessOften, however often there is reason to: a second later, then two, and half a
// minute in the end.
func TestRoomIsSoughtLessAndLessOften(t *testing.T) {
	c := newClocked(t)
	c.seek("a")
	c.sought("a", 0)
	for _, wait := range []int{1, 2, 4, 8, 16, 30, 30} {
		c.seek("a")
		c.seek("a")
		c.wantUntil(time.Duration(wait)*time.Second, "a")
		c.sought("a", 0)
		c.wantNext("")
	}
}

// TestAMemberThatComesHasRoomSoughtAtOnce: who starts a large gang waits for nothing.
func TestAMemberThatComesHasRoomSoughtAtOnce(t *testing.T) {
	c := newClocked(t)
	c.seek("a")
	for range 3 {
		c.sought("a", time.Second)
		c.seek("a")
		c.wantNext("")
		c.Came(keyOf("a"), c.now)
	}
}

// TestRoomThatIsLostLongAfterTheLastTimeIsSoughtSoon: back-offs are not for ever.
func TestRoomThatIsLostLongAfterTheLastTimeIsSoughtSoon(t *testing.T) {
	c := newClocked(t)
	c.seek("a")
	for range 7 {
		c.sought("a", 0)
		c.after(30 * time.Second)
		c.seek("a")
	}
	c.after(time.Minute)
	c.sought("a", 0)
	c.seek("a")
	c.wantUntil(time.Second, "a")
}

// TestSeekingRoomHasATenthOfTheTimeForEachNamespace, but for the first time of each gang, which is charged to
// it as well.
func TestSeekingRoomHasATenthOfTheTimeForEachNamespace(t *testing.T) {
	c := newClocked(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("one/%d", i), fmt.Sprintf("two/%d", i))
	}
	c.seek(names...)
	taken, turns := map[string]time.Duration{}, 0
	end := c.now.Add(20 * time.Minute)
	for c.now.Before(end) {
		rank, ok := c.Next(c.now)
		if !ok {
			c.now = c.Until()
			continue
		}
		if turns++; turns == len(names) && c.now.Sub(start) > time.Duration(len(names))*2*time.Second {
			t.Errorf("the last gang has its first turn after %v: it waits for others of its namespace", c.now.Sub(start))
		}
		c.Begin(rank.Key, c.now, c.now)
		c.after(2 * time.Second)
		taken[rank.Key.Namespace] += 2 * time.Second
		c.Sought(rank.Key, 2*time.Second, c.now)
		c.Seek(rank, c.now)
	}
	for _, namespace := range []string{"one", "two"} {
		if share := (taken[namespace] - 40*time.Second).Seconds() / 1200; share < 0.07 || share > 0.11 {
			t.Errorf("namespace %s has taken %.3f of the time, want a tenth", namespace, share)
		}
	}
}

// TestMembersDoNotWaitForTheirGangToSeekRoom: they are placed, and others of the namespace are, whatever room was
// sought before.
func TestMembersDoNotWaitForTheirGangToSeekRoom(t *testing.T) {
	c := newClocked(t)
	c.seek("one/a")
	c.sought("one/a", 10*time.Second)
	c.seek("one/a")
	c.wantNext("")
	c.enter("one/a")
	c.place("one/a")
	c.enter("one/b")
	c.place("one/b")
}

// TestMembersThatComeWhileRoomIsSoughtHaveTheirTurnNext.
func TestMembersThatComeWhileRoomIsSoughtHaveTheirTurnNext(t *testing.T) {
	c := newClocked(t)
	c.seek("a")
	c.begin("a")
	c.enter("a")
	c.Sought(keyOf("a"), 0, c.now)
	c.begin("a")
	if c.gangs[keyOf("a")].seeksRoom {
		t.Error("room is sought once more")
	}
}

// TestAGangThatSeeksRoomDoesNotStarve: nobody waits of it.
func TestAGangThatSeeksRoomDoesNotStarve(t *testing.T) {
	c := newClocked(t, "a")
	c.refusePatient(Refusal{}, "a")
	c.after(time.Hour)
	if !c.Starves(keyOf("a"), c.now) {
		t.Fatal("it does not starve while members wait")
	}
	c.seek("a")
	if c.Starves(keyOf("a"), c.now) {
		t.Error("it starves all the same")
	}
}
