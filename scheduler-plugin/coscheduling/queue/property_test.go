// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// lives is how many random lives a queue leads, and steps how long they are.
const (
	lives = 150
	steps = 1500
)

// life is a queue to which things happen at random.
type life struct {
	t   *testing.T
	r   *rand.Rand
	q   *Queue
	now time.Time
	// cycle is the gang that has its cycle, as its caller knows it.
	cycle *dialect.Key
	// told is how often in a row gangs were refused, by themselves or with others.
	told map[dialect.Key]int
	done []string // the last steps
}

func newLife(t *testing.T, seed uint64) *life {
	return &life{t: t, r: rand.New(rand.NewPCG(seed, 1)), q: New(), now: start, told: make(map[dialect.Key]int)}
}

func (f *life) note(format string, args ...any) {
	if f.done = append(f.done, fmt.Sprintf("%v ", f.now.Sub(start))+fmt.Sprintf(format, args...)); len(f.done) > 40 {
		f.done = f.done[1:]
	}
}

func (f *life) fail(format string, args ...any) {
	f.t.Helper()
	for _, step := range f.done {
		f.t.Log(step)
	}
	f.t.Fatalf(format, args...)
}

func (f *life) chance(percent int) bool { return f.r.IntN(100) < percent }

// key is that of one of a dozen gangs of three namespaces.
func (f *life) key() dialect.Key {
	return dialect.Key{Namespace: fmt.Sprintf("n%d", f.r.IntN(3)), Name: fmt.Sprintf("g%d", f.r.IntN(4))}
}

func (f *life) rank() Rank {
	return Rank{Key: f.key(), Priority: f.r.Int32N(3), Created: start.Add(time.Duration(f.r.IntN(3)) * time.Second)}
}

func (f *life) event() Event {
	return Event{Kind: EventKind(f.r.IntN(7)), Room: Room{"cpu": f.r.Int64N(4)}, Unbounded: f.chance(5), Cordoned: f.chance(30)}
}

func (f *life) refusal() Refusal {
	why := Refusal{Room: f.r.IntN(3), Shape: []string{"", "x", "y"}[f.r.IntN(3)], Runs: f.runs()}
	if why.Shape != "" && f.chance(50) {
		if why.Gap = f.runs(); why.Runs > 0 && why.Gap >= why.Runs {
			why.Gap = why.Runs - time.Minute
		}
	}
	if f.chance(70) {
		why.Need = ofCores(1+f.r.IntN(4), 1+f.r.Int64N(2))
	}
	why.Need.RegardsOthers = f.chance(20)
	if f.chance(10) {
		why.Again = f.now.Add(time.Duration(f.r.IntN(100)-10) * time.Second)
	}
	if f.chance(10) {
		why.Helpless = time.Minute
	}
	if f.chance(10) {
		why.Took, why.Overdue = time.Second, f.chance(50)
	}
	return why
}

// runs is a run time, unknown for one in four.
func (f *life) runs() time.Duration { return time.Duration(f.r.IntN(4)) * time.Hour }

// begin begins the cycle of whoever is next, and returns it.
func (f *life) begin() *gang {
	rank, ok := f.q.Next(f.now)
	if !ok {
		return nil
	}
	g := f.q.gangs[rank.Key]
	f.note("begin %v", rank)
	f.q.Begin(rank.Key, f.now, f.now)
	f.cycle = &rank.Key
	return g
}

// end ends the cycle, in any way.
func (f *life) end() {
	key := *f.cycle
	f.cycle = nil
	if g := f.q.gangs[key]; g == nil || !g.wasFirst {
		shape := []string{"", "x", "y"}[f.r.IntN(3)]
		if _, alike := f.q.RefuseAlike(key, shape, f.runs(), f.now); alike {
			f.note("%v is like others of %s", key, shape)
			f.told[key]++
			return
		}
	}
	rest := f.chance(30)
	if f.chance(30) {
		f.note("placed %v, rest %t", key, rest)
		f.q.Placed(key, rest, f.now)
		delete(f.told, key)
		if !rest {
			return
		}
	}
	why := f.refusal()
	f.note("refused %v: %+v", key, why)
	f.refused(key, why)
}

// refused refuses a gang, and the gangs that wait with it. The result is the shape of these gangs. It is nil if no other gang is
// refused by the same refusal. The refused gang may be ready already, if it has got the right to a reservation.
func (f *life) refused(key dialect.Key, why Refusal) *shape {
	g := f.q.gangs[key]
	counts := g != nil && g.state == inCycle && why.Shape != "" && !why.Overdue
	if g != nil && why.Room > g.room {
		delete(f.told, key)
	}
	f.told[key]++
	f.q.Refused(key, why, terms, f.now)
	if g == nil {
		return nil
	}
	with := g.in
	if with == nil && g.tries == nil && counts {
		with = f.q.shapes.named[why.Shape]
	}
	for _, s := range []*shape{with, g.tries} {
		if s == nil {
			continue
		}
		for _, other := range s.waiting.items {
			if other != g {
				f.told[other.rank.Key]++
			}
		}
	}
	return with
}

// step has one thing happen.
func (f *life) step() {
	switch n := f.r.IntN(100); {
	case n < 13:
		rank, lacks := f.rank(), f.chance(80)
		f.note("enter %v, lacks %t", rank, lacks)
		f.q.Enter(rank, lacks, f.now)
	case n < 15:
		rank := f.rank()
		f.note("rerank %v", rank)
		f.q.Rerank(rank, f.now)
	case n < 18:
		key := f.key()
		f.note("wake %v", key)
		f.q.Wake(key, f.now)
	case n < 22:
		key := f.key()
		f.note("leave %v", key)
		f.q.Leave(key, f.now)
	case n < 24:
		key := f.key()
		f.note("forget %v", key)
		f.q.Forget(key, f.now)
		delete(f.told, key)
	case n < 40:
		event := f.event()
		f.note("event %+v", event)
		f.q.Happened(event, f.now)
	case n < 42:
		key := f.key()
		f.note("unbound %v", key)
		f.q.Unbound(key, terms, f.now)
		delete(f.told, key)
	case n < 44:
		key := f.key()
		f.note("bound and settled %v", key)
		f.q.Bound(key, f.now)
		f.q.Settled(key)
	case n < 65:
		f.now = f.now.Add(time.Duration(f.r.IntN(1500)) * time.Millisecond)
	case n < 67:
		f.now = f.now.Add(time.Duration(f.r.IntN(90)) * time.Second)
	case f.cycle != nil:
		f.end()
	default:
		f.begin()
	}
}

// check holds the queue to what must be true of it whatever has happened.
func (f *life) check() {
	f.t.Helper()
	f.checkShapes()
	f.checkBackOffs()
	rank, ok := f.q.Next(f.now)
	if want := f.first(); want == nil && ok || want != nil && (!ok || rank != want.rank) {
		f.fail("%v, %t is next, want %+v", rank, ok, want)
	}
	f.checkShapes()
	f.checkOrders()
	if first := f.entitled(); first != nil && first.state == refused && !first.wasFirst {
		f.fail("%v has got the right to a reservation, and waits", first.rank)
	}
	until := f.q.Until()
	if !until.IsZero() && !until.After(f.now) {
		f.fail("the queue wants to be asked again %v ago", f.now.Sub(until))
	}
	if !ok {
		if at := f.soonest(); !at.IsZero() && (until.IsZero() || until.After(at)) {
			f.fail("the queue wants to be asked again at %v, but is to look at a gang at %v", until.Sub(start), at.Sub(start))
		}
	}
	for key, g := range f.q.gangs {
		if got, want := f.q.hopeful.first() == g, f.entitled() == g; got != want {
			f.fail("%v has the right to be helped: %t, want %t", key, got, want)
		}
	}
}

// first is the dumb line: of all gangs, the first by rank that may have a cycle.
func (f *life) first() *gang {
	due := f.least(func(g *gang) bool {
		return !f.barred(g).After(f.now) && !f.slow(g).After(f.now) && g.state == ready && !g.notBefore.After(f.now)
	})
	if due == nil {
		return nil
	}
	early := f.least(func(g *gang) bool {
		return g.state == ready && !f.barred(g).After(f.now) && !f.slow(g).After(f.now) && !g.early.After(f.now)
	})
	if early != nil && !f.q.wasEarly && early.rank.Compare(due.rank) < 0 {
		return early
	}
	return due
}

func (f *life) barred(g *gang) time.Time {
	until := g.unboundUntil
	if debt := f.q.debts[g.rank.Key.Namespace]; (!g.hadTurn || g.overdue) && debt.After(until) {
		until = debt
	}
	return until
}

// slow is until when a gang has no cycle because its last one was long.
func (f *life) slow(g *gang) time.Time {
	if g.slow {
		return f.q.slowUntil
	}
	return time.Time{}
}

// entitled is the gang that has the right to be helped by the dumb line.
func (f *life) entitled() *gang {
	return f.least(func(g *gang) bool {
		return g.state != out && g.lacks && (g.refusal != nil || g.state == inCycle) && !g.helpless.After(f.now)
	})
}

func (f *life) least(suits func(*gang) bool) *gang {
	var first *gang
	for _, g := range f.q.gangs {
		if suits(g) && (first == nil || g.rank.Compare(first.rank) < 0) {
			first = g
		}
	}
	return first
}

// soonest is when something about a gang changes by itself; zero for never.
func (f *life) soonest() time.Time {
	var at time.Time
	consider := func(t time.Time) {
		if t.After(f.now) {
			at = times.Sooner(at, t)
		}
	}
	for _, g := range f.q.gangs {
		switch g.state {
		case ready:
			consider(times.Later(times.Later(f.barred(g), g.notBefore), f.slow(g)))
		case refused:
			consider(g.again)
			consider(g.in.idle)
		}
		if g.state != out && g.lacks && g.refusal != nil {
			consider(g.helpless)
		}
	}
	return at
}

func (f *life) checkShapes() {
	f.t.Helper()
	cycles := 0
	all := make(map[*shape]int)
	for key, g := range f.q.gangs {
		if g.rank.Key != key {
			f.fail("%v has the rank of %v", key, g.rank.Key)
		}
		if (g.state == refused) != (g.in != nil) || g.in != nil && g.in.tried == g {
			f.fail("%v is in the state %d and waits with %+v", key, g.state, g.in)
		}
		if g.in != nil {
			all[g.in]++
			if g.refusal == nil || g.in.name != "" && f.q.shapes.named[g.in.name] != g.in {
				f.fail("%v was refused with a shape that is not known", key)
			}
			if slotOf := g.slots[slotShape] - 1; slotOf < 0 || g.in.waiting.items[slotOf] != g {
				f.fail("%v is not among those of its shape", key)
			}
			if slotOf := g.slots[slotRuns] - 1; slotOf < 0 || g.in.byRuns.items[slotOf] != g {
				f.fail("%v is not among those of its shape by run time", key)
			}
			if s := g.in; s.tried != nil && (s.tried.tries != s || f.q.gangs[s.tried.rank.Key] != s.tried) {
				f.fail("%v waits for a gang that does not try", key)
			}
		}
		if s := g.tries; s != nil && (s.tried != g || g.state != ready && g.state != inCycle) {
			f.fail("%v tries in the state %d, where %+v does", key, g.state, s.tried)
		}
		if s := g.tries; s != nil && g.state == ready && f.barred(g).After(f.now) && g.slots[slotDue] == 0 && g.slots[slotEarly] == 0 && !g.timer.Before(f.barred(g)) {
			f.fail("%v tries, but is barred", key)
		}
		if g.state == inCycle {
			cycles++
		}
		if (g.state == inCycle) != (f.q.planned == g) || g.woken && g.state != inCycle {
			f.fail("%v is in the state %d, woken %t", key, g.state, g.woken)
		}
	}
	if cycles > 1 || cycles == 0 && (f.q.planned != nil || len(f.q.missed.events) > 0) {
		f.fail("%d gangs are in their cycle", cycles)
	}
	if len(all) != len(f.q.shapes.all) {
		f.fail("%d shapes are known, want %d", len(f.q.shapes.all), len(all))
	}
	for s, n := range all {
		if !f.q.shapes.all[s] || f.q.shapes.regarding[s] != s.refusal.Need.RegardsOthers || n != s.waiting.Len() || n != s.byRuns.Len() {
			f.fail("the shape %q of %d gangs is wrong", s.name, n)
		}
	}
	for _, among := range []map[*shape]bool{f.q.shapes.regarding, toSet(f.q.shapes.named)} {
		for s := range among {
			if all[s] == 0 {
				f.fail("the shape %q is remembered, with which nobody waits", s.name)
			}
		}
	}
}

// checkBackOffs holds a shape to the back-off that each of its gangs would have by itself.
func (f *life) checkBackOffs() {
	f.t.Helper()
	for s := range f.q.shapes.all {
		end := s.notBefore
		if s.tried != nil {
			end = s.tried.notBefore
		}
		if s.tried != nil && s.tried.state == inCycle {
			continue
		}
		for _, g := range s.waiting.items {
			told := f.told[g.rank.Key]
			if most := backOff(told, terms.Initial, terms.Longest); end.Sub(f.now) > most {
				f.fail("%v was refused %d times, and waits for a back-off of %v with those that are like it, want %v at most", g.rank, told, end.Sub(f.now), most)
			}
		}
	}
}

func toSet(named map[string]*shape) map[*shape]bool {
	set := make(map[*shape]bool)
	for s := range maps.Values(named) {
		set[s] = true
	}
	return set
}

// checkOrders checks the heaps after Next. Gangs in debt may be in due and early as long as
// nobody asks for them.
func (f *life) checkOrders() {
	f.t.Helper()
	for _, o := range []*ordered{&f.q.due, &f.q.early, &f.q.hopeful, &f.q.timers} {
		f.checkOrder(o)
		for _, g := range o.items {
			if f.q.gangs[g.rank.Key] != g || g.state == out {
				f.fail("%v is in an order, but not in the queue", g.rank.Key)
			}
		}
	}
	for s := range f.q.shapes.all {
		f.checkOrder(&s.waiting)
		f.checkOrder(&s.byRuns)
	}
	for key, g := range f.q.gangs {
		due := g.state == ready && !g.notBefore.After(f.now)
		early := g.state == ready && !due && !g.early.After(f.now)
		barred := f.barred(g).After(f.now) || f.slow(g).After(f.now)
		if in := g.slots[slotDue] > 0; in != due && (in || !barred) {
			f.fail("%v is due: %t, want %t", key, in, due)
		}
		if in := g.slots[slotEarly] > 0; in != early && (in || !barred) {
			f.fail("%v may be early: %t, want %t", key, in, early)
		}
		if in := g.slots[slotTimer] > 0; in == g.timer.IsZero() {
			f.fail("%v is to be looked at: %t, at %v", key, in, g.timer)
		}
	}
}

func (f *life) checkOrder(o *ordered) {
	f.t.Helper()
	for i, g := range o.items {
		if g.slots[o.slot] != i+1 {
			f.fail("%v is at %d of order %d, and says %d", g.rank.Key, i+1, o.slot, g.slots[o.slot])
		}
		if i > 0 && o.Less(i, (i-1)/2) {
			f.fail("order %d is out of order", o.slot)
		}
	}
}

func TestTheLineAgreesWithADumbOne(t *testing.T) {
	for seed := range uint64(lives) {
		f := newLife(t, seed)
		for range steps {
			f.step()
			f.check()
		}
	}
}

// TestNobodyWaitsForEver: from any state, each gang has a cycle as time passes, or one ahead
// has that is refused with it.
func TestNobodyWaitsForEver(t *testing.T) {
	for seed := range uint64(lives) {
		f := newLife(t, seed)
		for range 10 {
			for range steps / 30 {
				f.step()
			}
			f.quiet(2 * idleAfter)
		}
	}
}

// TestAnythingHelpsEverybody: after an event that may help all, each gang has a cycle, or one
// ahead has that is refused with it.
func TestAnythingHelpsEverybody(t *testing.T) {
	for seed := range uint64(lives) {
		f := newLife(t, seed)
		for range 10 {
			for range steps / 30 {
				f.step()
			}
			f.note("anything")
			f.q.Happened(Event{Kind: Anything}, f.now)
			f.quiet(30 * time.Second)
		}
	}
}

// TestAShorterGangIsPlannedWhenAGapHasGrown, though longer ones of its shape are refused again: after an event, and all cycles that
// come of it, each gang waits with the shape that it has now.
func TestAShorterGangIsPlannedWhenAGapHasGrown(t *testing.T) {
	for seed := range uint64(lives) {
		f := newLife(t, seed)
		runs := make(map[dialect.Key]time.Duration)
		for range 12 {
			rank := f.rank()
			runs[rank.Key] = f.runs()
			f.q.Enter(rank, false, f.now)
		}
		for range 30 {
			gap := f.runs()
			refusalOf := func(key dialect.Key) Refusal {
				if runs[key] > 0 && runs[key] <= gap {
					return Refusal{Shape: "in the gap", Runs: runs[key]}
				}
				return Refusal{Shape: "too long", Runs: runs[key], Gap: gap}
			}
			f.note("a gap of %v", gap)
			f.now = f.now.Add(time.Minute)
			f.q.Happened(Event{Kind: Anything}, f.now)
			for end := f.now.Add(terms.Longest); !f.now.After(end); f.now = f.now.Add(time.Second) {
				for g := f.begin(); g != nil; g = f.begin() {
					key := g.rank.Key
					if _, alike := f.q.RefuseAlike(key, refusalOf(key).Shape, runs[key], f.now); !alike {
						f.q.Refused(key, refusalOf(key), terms, f.now)
					}
					f.checkShapes()
				}
			}
			for key, g := range f.q.gangs {
				if of := refusalOf(key); of.Gap == 0 && g.in.name != of.Shape {
					f.fail("%v, which runs for %v, waits with longer ones", key, runs[key])
				}
			}
		}
	}
}

// quiet has everybody refused or placed at random, and nothing else happen. It checks that
// each gang in the queue has a cycle within a time, and a number of cycles of others; or that one
// ahead has that is refused with it.
func (f *life) quiet(within time.Duration) {
	f.t.Helper()
	if f.cycle != nil {
		f.end()
	}
	waits := make(map[*gang]bool)
	for _, g := range f.q.gangs {
		if g.state != out {
			waits[g] = true
		}
	}
	bound := 20 * len(waits)
	end, cycles := f.now.Add(within), 0
	for !f.now.After(end) {
		g := f.begin()
		if g == nil {
			until := f.q.Until()
			if until.IsZero() {
				break
			}
			f.now = until
			f.check()
			continue
		}
		if cycles++; cycles == bound && len(waits) > 0 {
			f.fail("%d gangs wait after %d cycles", len(waits), cycles)
		}
		f.now = f.now.Add(time.Duration(f.r.IntN(50)) * time.Millisecond)
		with := f.endQuietly(g)
		delete(waits, g)
		for other := range waits {
			if with != nil && with == other.in && g.rank.Compare(other.rank) < 0 {
				delete(waits, other)
			}
		}
		f.check()
	}
	for g := range waits {
		f.fail("%v has had no cycle in %v: %+v", g.rank, within, g)
	}
}

// endQuietly ends the cycle of a gang so that nothing but time has it have another. The result is that of refused.
func (f *life) endQuietly(g *gang) *shape {
	f.cycle = nil
	if f.chance(20) {
		f.note("placed %v", g.rank.Key)
		f.q.Placed(g.rank.Key, false, f.now)
		delete(f.told, g.rank.Key)
		return nil
	}
	why := f.refusal()
	why.Took, why.Overdue, why.Again = 0, false, time.Time{}
	f.note("refused %v: %+v", g.rank.Key, why)
	return f.refused(g.rank.Key, why)
}
