// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// many is how many gangs the benchmarks have wait.
const many = 10_000

// cycles has all cycles that there are now end in the same way, and returns how many were
// planned. Shape is the shape of a gang.
func (q *Queue) cycles(now time.Time, shape func(dialect.Key) string, place bool) int {
	planned := 0
	for {
		rank, ok := q.Next(now)
		if !ok {
			return planned
		}
		q.Begin(rank.Key, now, now)
		if _, alike := q.RefuseAlike(rank.Key, shape(rank.Key), 0, now); alike {
			continue
		}
		planned++
		if place {
			q.Placed(rank.Key, false, now)
		} else {
			q.Refused(rank.Key, Refusal{Shape: shape(rank.Key), Need: ofCores(1, 1)}, terms, now)
		}
	}
}

// crowd has many gangs enter and be refused, and returns how many were planned for it.
func crowd(q *Queue, shape func(dialect.Key) string) int {
	for i := range many {
		key := dialect.Key{Namespace: "default", Name: fmt.Sprintf("g%05d", i)}
		q.Enter(Rank{Key: key, Created: start}, true, start)
	}
	return q.cycles(start, shape, false)
}

func same(dialect.Key) string    { return "x" }
func own(key dialect.Key) string { return key.Name }
func unnamed(dialect.Key) string { return "" }

// lifeOfManyAlike leads many gangs that are alike through their lives: they enter, are refused,
// hear of a thousand events, and are placed. It returns how many plans that took.
func lifeOfManyAlike() int {
	q := New()
	planned, now := crowd(q, same), start
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		q.Happened(cores(PodEnded, 1), now)
		planned += q.cycles(now, same, false)
	}
	now = now.Add(time.Minute)
	q.Happened(Event{Kind: Anything}, now)
	return planned + q.cycles(now, same, true)
}

// TestManyGangsAlikeCostFewPlans: the first is planned, and again when its back-off allows; and
// each when it is placed.
func TestManyGangsAlikeCostFewPlans(t *testing.T) {
	began := time.Now()
	planned := lifeOfManyAlike()
	if most := many + 20; planned > most {
		t.Errorf("%d gangs took %d plans, want at most %d", many, planned, most)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d gangs took %v", many, took) // it is 0.1 s on a quiet machine
	}
}

// TestManyGangsAreNotLookedAtWhenAPodIsPlaced, as each binding is such an event.
func TestManyGangsAreNotLookedAtWhenAPodIsPlaced(t *testing.T) {
	q := New()
	if planned := crowd(q, own); planned != many {
		t.Fatalf("%d gangs took %d plans", many, planned)
	}
	if q.Listens(PodPlaced) {
		t.Error("a queue listens to Pods that are placed, which help nobody in it")
	}
	if cost := testing.AllocsPerRun(100, func() { q.Happened(Event{Kind: PodPlaced}, start) }); cost > 0 {
		t.Errorf("a Pod that is placed costs %v allocations", cost)
	}
	if planned := q.cycles(start.Add(30*time.Second), own, false); planned > 0 {
		t.Errorf("Pods that were placed took %d plans", planned)
	}
}

// BenchmarkManyGangsAlike is 10,000 gangs that are alike, from their entering to their places,
// with a thousand events.
func BenchmarkManyGangsAlike(b *testing.B) {
	for b.Loop() {
		lifeOfManyAlike()
	}
}

// BenchmarkManyGangsOfTheirOwn is 10,000 gangs of which each is like no other, and an event.
func BenchmarkManyGangsOfTheirOwn(b *testing.B) {
	crowded := func() *Queue {
		q := New()
		crowd(q, unnamed)
		return q
	}
	b.Run("Enter", func(b *testing.B) {
		for b.Loop() {
			crowded()
		}
	})
	for name, event := range map[string]Event{
		"PodPlaced": {Kind: PodPlaced}, "NodeTooSmall": cores(NodeChanged, 0),
	} {
		b.Run(name+"1000", func(b *testing.B) {
			q := crowded()
			for b.Loop() {
				for range 1000 {
					q.Happened(event, start)
				}
			}
		})
	}
	b.Run("Anything", func(b *testing.B) {
		q := crowded()
		now := start
		for b.Loop() {
			now = now.Add(10 * time.Second)
			q.Happened(Event{Kind: Anything}, now)
			if planned := q.cycles(now, unnamed, false); planned != many {
				b.Fatalf("%d plans", planned)
			}
		}
	})
}
