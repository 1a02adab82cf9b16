// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// long is the refusal of a gang whose cycle was given up after two seconds.
var long = Refusal{Took: 2 * time.Second, Overdue: true}

func TestWhoWaitsForTheEndOfADebt(t *testing.T) {
	tests := map[string]struct {
		gang  string
		waits bool
	}{
		"one that was never planned":                      {"one/new", true},
		"one whose cycle took too long":                   {"one/long", true},
		"one whose cycles are known to be short":          {"one/short", false},
		"one of another namespace":                        {"two/new", false},
		"one whose cycle took too long, but not the last": {"one/better", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "one/better")
			c.refuse(long, "one/better")
			c.after(18 * time.Second)
			c.Wake(keyOf("one/better"), c.now)
			c.refuse(Refusal{}, "one/better")
			c.enter("one/short")
			c.refuse(Refusal{}, "one/short")
			c.enter("one/long")
			c.refuse(long, "one/long")
			c.after(2 * time.Second)
			c.enter(tc.gang)
			if tc.waits {
				c.wantUntil(16*time.Second, tc.gang)
			} else {
				c.wantNext(tc.gang)
			}
		})
	}
}

func TestGangsWhoseTurnsTakeTooLongHaveATenthOfTheTimeForEachNamespace(t *testing.T) {
	c := newClocked(t)
	for _, name := range []string{"one/a", "one/b", "one/c", "two/a", "two/b", "two/c"} {
		c.enter(name)
	}
	taken := c.takeLong(10 * time.Minute)
	for _, namespace := range []string{"one", "two"} {
		if share := taken[namespace].Seconds() / 600; share < 0.08 || share > 0.11 {
			t.Errorf("namespace %s has taken %.3f of the time, want a tenth", namespace, share)
		}
	}
}

// takeLong has each cycle take two seconds in vain for so long, and returns how much of that each namespace has taken.
func (c *clocked) takeLong(d time.Duration) map[string]time.Duration {
	taken := map[string]time.Duration{}
	for end := c.now.Add(d); c.now.Before(end); {
		rank, ok := c.Next(c.now)
		if !ok {
			c.now = c.Until()
			continue
		}
		c.Begin(rank.Key, c.now, c.now)
		c.after(2 * time.Second)
		taken[rank.Key.Namespace] += 2 * time.Second
		c.Refused(rank.Key, long, terms, c.now)
		c.anything()
	}
	return taken
}

// TestLongTurnsInVainHaveAQuarterOfTheTime together, also if no cycle was given up, and though the gangs are alike. Other gangs have
// their cycles meanwhile.
func TestLongTurnsInVainHaveAQuarterOfTheTime(t *testing.T) {
	for name, shape := range map[string]string{"gangs that are alike": "x", "gangs that are not": ""} {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t)
			for i := range 20 {
				c.enter(fmt.Sprintf("one/%d", i))
			}
			taken := time.Duration(0)
			for end := c.now.Add(10 * time.Minute); c.now.Before(end); {
				rank, ok := c.Next(c.now)
				if !ok {
					c.now = c.Until()
					continue
				}
				c.Begin(rank.Key, c.now, c.now)
				c.after(time.Second)
				taken += time.Second
				c.Refused(rank.Key, Refusal{Took: time.Second, Shape: shape}, terms, c.now)
				c.anything()
			}
			if share := taken.Seconds() / 600; share < 0.2 || share > 0.29 {
				t.Errorf("they have %.3f of the time, want a quarter", share)
			}
			c.enter("one/new")
			c.wantNext("one/new")
		})
	}
}

// TestAGangInDebtTakesNoTurnAhead of others either.
func TestAGangInDebtTakesNoTurnAhead(t *testing.T) {
	c := newClocked(t, "one/long")
	c.refuse(long, "one/long")
	c.anything()
	c.enter("two/new")
	c.wantNext("two/new")
}

func TestADebtIsNotMadeShorter(t *testing.T) {
	c := newClocked(t, "one/a", "one/b", "one/new")
	c.begin("one/a")
	c.refused("one/a", Refusal{})
	c.refuse(long, "one/b")
	c.after(time.Second)
	c.Wake(keyOf("one/a"), c.now)
	c.refuse(Refusal{Took: time.Millisecond, Overdue: true}, "one/a")
	c.Leave(keyOf("one/a"), c.now)
	c.Leave(keyOf("one/b"), c.now)
	c.wantUntil(17*time.Second, "one/new")
}

func TestDebtsAreForgotten(t *testing.T) {
	c := newClocked(t, "one/a", "two/b")
	c.refuse(long, "one/a")
	c.after(18 * time.Second)
	c.refuse(long, "two/b")
	if n := len(c.debts); n != 1 {
		t.Errorf("%d debts are remembered, want 1", n)
	}
}

// TestGangsWhoseTurnsTakeTooLongHaveAQuarterOfTheTime, in however many namespaces they are.
func TestGangsWhoseTurnsTakeTooLongHaveAQuarterOfTheTime(t *testing.T) {
	c := newClocked(t)
	for n := range 20 {
		c.enter(fmt.Sprintf("namespace-%d/a", n))
	}
	var taken time.Duration
	for _, inOne := range c.takeLong(20 * time.Minute) {
		taken += inOne
	}
	if share := taken.Minutes() / 20; share > 0.28 {
		t.Errorf("they have taken %.3f of the time, want a quarter", share)
	}
}
