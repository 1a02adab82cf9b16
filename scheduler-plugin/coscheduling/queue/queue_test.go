// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// start is when tests begin.
var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// terms are those of tests that say nothing else.
var terms = Terms{Initial: time.Second, Longest: 8 * time.Second}

// clocked is a queue with a clock. Gangs have names, or namespace/name.
type clocked struct {
	*Queue
	t   *testing.T
	now time.Time
	// entered is how many gangs were new in the queue: each is younger than those before.
	entered int
	ranks   map[string]Rank
	// runs are the run times of gangs, for alike.
	runs map[string]time.Duration
}

func newClocked(t *testing.T, names ...string) *clocked {
	t.Helper()
	c := &clocked{Queue: New(), t: t, now: start, ranks: make(map[string]Rank)}
	c.enter(names...)
	return c
}

func keyOf(name string) dialect.Key {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return dialect.Key{Namespace: namespace, Name: name}
	}
	return dialect.Key{Namespace: "default", Name: name}
}

func nameOf(key dialect.Key) string {
	if key.Namespace == "default" {
		return key.Name
	}
	return key.String()
}

// enter has gangs enter the queue, which lack their minimum. New ones have priority 0.
func (c *clocked) enter(names ...string) {
	for _, name := range names {
		if _, known := c.ranks[name]; !known {
			c.rank(name, 0)
		}
		c.Enter(c.ranks[name], true, c.now)
	}
}

// rank gives a gang that is not in the queue yet a priority.
func (c *clocked) rank(name string, priority int32) {
	c.entered++
	c.ranks[name] = Rank{Key: keyOf(name), Priority: priority, Created: start.Add(time.Duration(c.entered) * time.Second)}
}

func (c *clocked) after(d time.Duration) { c.now = c.now.Add(d) }

func (c *clocked) happens(event Event) { c.Happened(event, c.now) }

func (c *clocked) anything() { c.happens(Event{Kind: Anything}) }

// next is who is next, empty for nobody.
func (c *clocked) next() string {
	rank, ok := c.Next(c.now)
	if !ok {
		return ""
	}
	return nameOf(rank.Key)
}

// wantNext checks who is next, empty for nobody.
func (c *clocked) wantNext(want string) {
	c.t.Helper()
	if got := c.next(); got != want {
		c.t.Fatalf("%v after the start %q is next, want %q", c.now.Sub(start), got, want)
	}
}

// begin checks that a gang is next, and begins its cycle.
func (c *clocked) begin(name string) {
	c.t.Helper()
	c.wantNext(name)
	c.Begin(keyOf(name), c.now, c.now)
}

// refuse has cycles of gangs end without a place, one after the other.
func (c *clocked) refuse(why Refusal, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.begin(name)
		c.refused(name, why)
	}
}

func (c *clocked) refused(name string, why Refusal) { c.Refused(keyOf(name), why, terms, c.now) }

// place has cycles of gangs end with a place, one after the other.
func (c *clocked) place(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.begin(name)
		c.Placed(keyOf(name), false, c.now)
	}
}

// enough has gangs have their minimum, so that they have no right to a reservation.
func (c *clocked) enough(names ...string) {
	for _, name := range names {
		c.Enter(c.ranks[name], false, c.now)
	}
}

// wantUntil checks that nobody is next for a while, and that a gang is at its end: Until
// says so.
func (c *clocked) wantUntil(d time.Duration, name string) {
	c.t.Helper()
	c.wantNext("")
	end := c.now.Add(d)
	for until := c.Until(); until.Before(end); until = c.Until() {
		if until.IsZero() {
			c.t.Fatalf("nobody is ever next, want %q in %v", name, d)
		}
		c.now = until
		c.wantNext("")
	}
	c.now = end.Add(-time.Nanosecond)
	c.wantNext("")
	c.now = end
	c.wantNext(name)
}

func TestTheFirstByRankIsNext(t *testing.T) {
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	tests := map[string]struct{ ahead, behind Rank }{
		"of higher priority, though younger": {
			Rank{Priority: 2, Created: at(9), Key: keyOf("z")}, Rank{Priority: 1, Created: at(1), Key: keyOf("a")}},
		"older": {
			Rank{Created: at(1), Key: keyOf("z")}, Rank{Created: at(2), Key: keyOf("a")}},
		"of one age, by name": {
			Rank{Created: at(1), Key: keyOf("z/a")}, Rank{Created: at(1), Key: keyOf("a/b")}},
		"of one name, by namespace": {
			Rank{Created: at(1), Key: keyOf("a/a")}, Rank{Created: at(1), Key: keyOf("b/a")}},
		"of negative priority last": {
			Rank{Priority: 0, Created: at(9), Key: keyOf("z")}, Rank{Priority: -1, Created: at(1), Key: keyOf("a")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, both := range [][]Rank{{tc.ahead, tc.behind}, {tc.behind, tc.ahead}} {
				q := New()
				for _, rank := range both {
					q.Enter(rank, true, start)
				}
				if got, _ := q.Next(start); got != tc.ahead {
					t.Errorf("%v is next, want %v", got, tc.ahead)
				}
			}
		})
	}
}

func TestNobodyIsNextInAnEmptyLine(t *testing.T) {
	c := newClocked(t)
	c.wantNext("")
	if until := c.Until(); !until.IsZero() {
		t.Errorf("the queue wants to be asked again at %v", until)
	}
	for kind := Anything; kind <= NodeGone; kind++ {
		if c.Listens(kind) {
			t.Errorf("an empty line listens to events of kind %d", kind)
		}
	}
}

// TestWhoIsUnknownIsIgnored: what the queue is told may come late.
func TestWhoIsUnknownIsIgnored(t *testing.T) {
	c := newClocked(t, "a")
	b := keyOf("b")
	c.Rerank(Rank{Key: b}, c.now)
	c.Wake(b, c.now)
	c.Leave(b, c.now)
	c.Forget(b, c.now)
	c.Begin(b, c.now, c.now)
	c.Refused(b, Refusal{}, terms, c.now)
	c.Placed(b, true, c.now)
	c.Unbound(b, terms, c.now)
	c.Bound(b, c.now)
	c.Settled(b)
	if _, alike := c.RefuseAlike(b, "x", 0, c.now); alike {
		t.Error("an unknown gang is like another")
	}
	if _, told := c.Told(b); told || c.IsFirst(b) || !c.Since(b).IsZero() || c.Failures(b) != 0 {
		t.Error("the queue knows an unknown gang")
	}
	c.wantNext("a")
}

func TestAGangThatMovesForwardIsNext(t *testing.T) {
	c := newClocked(t, "a", "b")
	b := c.ranks["b"]
	b.Priority = 1
	c.Rerank(b, c.now)
	c.wantNext("b")
	b.Priority = -1
	c.Rerank(b, c.now)
	c.wantNext("a")
}

// TestAGangThatMovesForwardIsPlannedAgain: resources may have been reserved for those that were
// ahead of it.
func TestAGangThatMovesForwardIsPlannedAgain(t *testing.T) {
	c := newClocked(t, "a")
	c.refuse(Refusal{}, "a")
	c.after(2 * time.Second)
	rank := c.ranks["a"]
	rank.Priority = -1
	c.Rerank(rank, c.now)
	c.wantNext("")
	rank.Priority = 1
	c.Rerank(rank, c.now)
	c.wantNext("a")
}

func TestAGangThatMovesForwardInItsTurnHasAnother(t *testing.T) {
	c := newClocked(t, "a")
	c.begin("a")
	rank := c.ranks["a"]
	rank.Priority = 1
	c.Rerank(rank, c.now)
	c.refused("a", Refusal{})
	c.wantUntil(time.Second, "a")
}

func TestAGangThatIsRefusedWaitsForAnEvent(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(Refusal{}, "a", "b")
	c.after(30 * time.Second)
	c.wantNext("")
	c.anything()
	c.refuse(Refusal{}, "a", "b")
	c.wantNext("")
}

func TestTheBackOffDoublesAndIsCapped(t *testing.T) {
	c := newClocked(t, "a")
	for i, want := range []time.Duration{1, 2, 4, 8, 8, 8} {
		c.refuse(Refusal{}, "a")
		if got := c.Failures(keyOf("a")); got != i+1 {
			t.Errorf("the gang has failed %d times, want %d", got, i+1)
		}
		c.anything()
		c.wantUntil(want*time.Second, "a")
	}
}

func TestTheBackOffIsCappedIfItsBoundIsNoDoubling(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 3, 2: 6, 3: 10, 4: 10, 1 << 40: 10} {
		if got := backOff(failures, 3, 10); got != want {
			t.Errorf("the back-off after %d failures is %d, want %d", failures, got, want)
		}
	}
	if got := backOff(1<<40, 0, 10); got != 0 {
		t.Errorf("no back-off has become %d", got)
	}
}

func TestTheBackOffStartsOverWhenRoomGrows(t *testing.T) {
	c := newClocked(t, "a")
	for _, cycle := range []struct {
		room int
		want time.Duration
	}{{0, 1}, {0, 2}, {3, 1}, {3, 2}, {2, 4}, {3, 1}, {4, 1}} {
		c.refuse(Refusal{Room: cycle.room}, "a")
		c.anything()
		c.wantUntil(cycle.want*time.Second, "a")
	}
}

func TestTheBackOffStartsOverAfterAPlace(t *testing.T) {
	c := newClocked(t, "a")
	for range 3 {
		c.refuse(Refusal{}, "a")
		c.anything()
		c.after(8 * time.Second)
	}
	c.place("a")
	if got := c.Failures(keyOf("a")); got != 0 {
		t.Errorf("a gang with a place has failed %d times", got)
	}
	c.enter("a")
	c.refuse(Refusal{}, "a")
	c.anything()
	c.wantUntil(time.Second, "a")
}

// TestAPlaceEndsTheBackOff that the gang was in when it had an early cycle.
func TestAPlaceEndsTheBackOff(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(Refusal{}, "a")
	c.Wake(keyOf("a"), c.now)
	c.place("a", "b") // a is early
	c.enter("a")
	c.wantNext("a")
}

// TestAGangAheadHasATurnInItsBackOff: the room may be meant for it.
func TestAGangAheadHasATurnInItsBackOff(t *testing.T) {
	c := newClocked(t, "a")
	c.refuse(Refusal{}, "a")
	c.anything()
	c.wantNext("") // nobody is behind it
	c.enter("b")
	c.refuse(Refusal{}, "a")
	c.wantNext("b")
}

func TestAGangAheadTakesEarlyTurnsOnceInItsShortestBackOff(t *testing.T) {
	c := newClocked(t, "a")
	for range 4 { // its back-off is eight seconds now
		c.refuse(Refusal{}, "a")
		c.after(8 * time.Second)
		c.anything()
	}
	c.refuse(Refusal{}, "a")
	c.enter("b")
	early := 0
	for range 40 { // four seconds
		c.anything()
		if c.next() == "a" {
			early++
			c.refuse(Refusal{}, "a")
		}
		c.refuse(Refusal{}, "b")
		c.Forget(keyOf("b"), c.now)
		c.enter("b")
		c.after(100 * time.Millisecond)
	}
	if early != 4 {
		t.Errorf("the gang ahead had %d early cycles in four seconds, want 4", early)
	}
}

// TestGangsAheadDoNotTakeEachTurnTogether: many of them that never fit have one early cycle
// before each cycle of a gang behind.
func TestGangsAheadDoNotTakeEachTurnTogether(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	c := newClocked(t, append(names, "z")...)
	c.refuse(Refusal{}, append(names, "z")...)
	c.after(time.Second)
	c.anything()
	c.refuse(Refusal{}, append(names, "z")...) // the back-off is two seconds now
	c.after(time.Millisecond)
	c.Forget(keyOf("z"), c.now)
	for range 3 {
		c.enter("z")
		c.anything()
		early := c.next()
		if early == "z" {
			t.Error("no gang ahead has an early cycle")
		}
		c.refuse(Refusal{}, early)
		if got := c.next(); got != "z" {
			t.Errorf("%s is next, want z", got)
		}
		c.refuse(Refusal{}, "z")
		c.Forget(keyOf("z"), c.now)
	}
}

func TestAGangBehindHasNoTurnInItsBackOff(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(Refusal{}, "a", "b")
	c.Wake(keyOf("b"), c.now)
	c.rank("c", 1)
	c.enter("c")
	c.refuse(Refusal{}, "c")
	c.wantUntil(time.Second, "b")
}

func TestAGangHasAnotherTurnThoughNothingHappens(t *testing.T) {
	c := newClocked(t, "first", "second")
	c.refuse(Refusal{}, "first", "second")
	for range 5 {
		c.wantUntil(time.Minute, "first")
		c.refuse(Refusal{}, "first")
	}
	c.refuse(Refusal{}, "second") // after five minutes
	c.Leave(keyOf("first"), c.now)
	c.refuse(Refusal{}, "second") // at once
	c.wantUntil(time.Minute, "second")
}

func TestAGangHasAnotherTurnWhenItIsToldSo(t *testing.T) {
	tests := map[string]struct{ again, want time.Duration }{
		"soon":                           {5 * time.Second, 5 * time.Second},
		"later than it would be without": {2 * time.Minute, 2 * time.Minute},
		"much later":                     {time.Hour, idleAfter},
		"before its long back-off ends":  {4 * time.Second, 4 * time.Second},
		"within its back-off":            {time.Millisecond, time.Second},
		"in the past":                    {-time.Hour, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.refuse(Refusal{Again: c.now.Add(tc.again)}, "a")
			c.wantUntil(tc.want, "a")
		})
	}
}

func TestAGangThatIsWokenIsReady(t *testing.T) {
	for name, wake := range map[string]func(*clocked){
		"by Wake":  func(c *clocked) { c.Wake(keyOf("a"), c.now) },
		"by Enter": func(c *clocked) { c.enter("a") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a", "b")
			c.refuse(Refusal{Shape: "x"}, "a")
			c.alike("x", "b")
			wake(c)
			c.wantUntil(time.Second, "a")
			c.begin("a")
			if _, alike := c.RefuseAlike(keyOf("a"), "x", 0, c.now); alike {
				t.Error("the gang's own refusal is taken for that of another")
			}
			wake(c)
			c.refused("a", Refusal{})
			c.wantUntil(2*time.Second, "a")
		})
	}
}

func TestAGangThatIsOutOfLineIsNotWoken(t *testing.T) {
	c := newClocked(t, "a")
	c.Leave(keyOf("a"), c.now)
	c.Wake(keyOf("a"), c.now)
	c.anything()
	c.wantNext("")
	if until := c.Until(); !until.IsZero() {
		t.Errorf("the queue wants to be asked again at %v", until)
	}
}

func TestAGangThatLeavesKeepsItsBackOff(t *testing.T) {
	c := newClocked(t, "a")
	for range 3 {
		c.refuse(Refusal{}, "a")
		c.anything()
		c.after(8 * time.Second)
	}
	c.refuse(Refusal{Message: "no room"}, "a")
	c.Leave(keyOf("a"), c.now)
	if why, told := c.Told(keyOf("a")); !told || why.Message != "no room" {
		t.Errorf("out of the queue the gang was told %q, %t", why.Message, told)
	}
	c.after(time.Second)
	c.enter("a")
	c.wantUntil(7*time.Second, "a")
}

func TestAGangThatIsForgottenBeginsAnew(t *testing.T) {
	c := newClocked(t, "a")
	for range 3 {
		c.refuse(Refusal{}, "a")
		c.anything()
		c.after(8 * time.Second)
	}
	c.refuse(Refusal{}, "a")
	c.Forget(keyOf("a"), c.now)
	if _, told := c.Told(keyOf("a")); told || c.Failures(keyOf("a")) != 0 || !c.Since(keyOf("a")).IsZero() {
		t.Error("something is known of a gang that was forgotten")
	}
	c.enter("a")
	c.refuse(Refusal{}, "a")
	c.anything()
	c.wantUntil(time.Second, "a")
}

// TestATurnEndsWithItsGang: its outcome may be told when it is not in the queue any more.
func TestATurnEndsWithItsGang(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(*clocked)
		want      time.Duration // until its next cycle, 0 for never
	}{
		"that has left":                       {func(c *clocked) { c.Leave(keyOf("a"), c.now) }, 0},
		"that is forgotten":                   {func(c *clocked) { c.Forget(keyOf("a"), c.now) }, 0},
		"that has left and come back":         {func(c *clocked) { c.Leave(keyOf("a"), c.now); c.enter("a") }, time.Second},
		"that waits for it and hears of more": {func(c *clocked) { c.enter("a") }, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClocked(t, "a")
			c.begin("a")
			tc.meanwhile(c)
			c.refused("a", Refusal{})
			if tc.want == 0 {
				c.wantNext("")
				if until := c.Until(); !until.IsZero() {
					t.Errorf("the queue wants to be asked again at %v", until)
				}
				return
			}
			c.wantUntil(tc.want, "a")
		})
	}
}

// TestATurnWithoutAnOutcomeIsOverWhenTheNextOneBegins: a gang that is not told what came of its
// cycle must not wait for that.
func TestATurnWithoutAnOutcomeIsOverWhenTheNextOneBegins(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.begin("a")
	c.place("b")
	c.wantNext("a")
}

func TestAGangWithAPlaceIsOutOfLine(t *testing.T) {
	c := newClocked(t, "a", "b")
	c.refuse(Refusal{Message: "no room"}, "a")
	c.anything()
	c.after(time.Second)
	c.place("a")
	if _, told := c.Told(keyOf("a")); told {
		t.Error("a gang with a place is still told why it has none")
	}
	c.place("b")
	c.anything()
	c.wantNext("")
}

func TestTheRestOfAGangWithAPlaceIsRefused(t *testing.T) {
	c := newClocked(t, "a")
	c.begin("a")
	c.Placed(keyOf("a"), true, c.now)
	c.wantNext("")
	c.refused("a", Refusal{Message: "no room for 2 more"})
	if why, _ := c.Told(keyOf("a")); why.Message != "no room for 2 more" {
		t.Errorf("the gang was told %q", why.Message)
	}
	c.anything()
	c.wantUntil(time.Second, "a")
}

func TestAGangIsReadyIfItIsToHaveATurnEvenIfNothingHappens(t *testing.T) {
	c := newClocked(t)
	a := keyOf("a")
	want := func(want bool, when string) {
		t.Helper()
		if got := c.IsReady(a); got != want {
			t.Errorf("%s the gang is ready: %t, want %t", when, got, want)
		}
	}
	want(false, "before it is known")
	c.enter("a")
	want(true, "in the queue")
	c.begin("a")
	want(true, "in its cycle")
	c.refused("a", Refusal{})
	want(false, "when it was refused")
	c.anything()
	want(true, "in its back-off, after something has happened,")
	c.Leave(a, c.now)
	want(false, "out of the queue")
}

func TestABindingThatFailedIsABackOffThatNothingShortens(t *testing.T) {
	c := newClocked(t, "a")
	for i, want := range []time.Duration{1, 2, 4, 8, 8} {
		c.place("a")
		c.Unbound(keyOf("a"), terms, c.now)
		if got := c.Failures(keyOf("a")); got != i+1 {
			t.Errorf("the gang has failed %d times, want %d", got, i+1)
		}
		c.enter("a")
		c.Wake(keyOf("a"), c.now)
		c.anything()
		c.rank("b", -1)
		c.enter("b")
		c.place("b") // nor does a gang behind it
		c.wantUntil(want*time.Second, "a")
	}
}

func TestABindingThatFailedInTheNextTurnIsABackOffToo(t *testing.T) {
	c := newClocked(t, "a")
	c.place("a")
	c.enter("a")
	c.begin("a")
	c.Unbound(keyOf("a"), Terms{Initial: 20 * time.Second, Longest: time.Minute}, c.now)
	c.refused("a", Refusal{})
	c.anything()
	c.wantUntil(20*time.Second, "a")
}

func TestABindingThatFailedHasAGangPlannedThatWasRefused(t *testing.T) {
	c := newClocked(t, "a")
	c.begin("a")
	c.Placed(keyOf("a"), true, c.now)
	c.refused("a", Refusal{Message: "no room for 2 more"})
	c.after(3 * time.Second)
	c.Unbound(keyOf("a"), terms, c.now)
	if why, told := c.Told(keyOf("a")); told {
		t.Errorf("the gang is still told %q", why.Message)
	}
	c.wantUntil(time.Second, "a")
}

func TestTheBackOffForBindingsEndsWhenTheyAreBound(t *testing.T) {
	c := newClocked(t, "a")
	for range 3 {
		c.place("a")
		c.Unbound(keyOf("a"), terms, c.now)
		c.enter("a")
		c.after(8 * time.Second)
	}
	c.place("a")
	c.Unbound(keyOf("a"), terms, c.now)
	c.enter("a")
	c.wantNext("")
	c.Bound(keyOf("a"), c.now)
	c.place("a")
	c.Unbound(keyOf("a"), terms, c.now)
	c.enter("a")
	c.wantUntil(time.Second, "a")
}

func TestAGangWaitsSinceItWasFirstPlanned(t *testing.T) {
	c := newClocked(t, "a")
	a := keyOf("a")
	since := func(want time.Time) {
		t.Helper()
		if got := c.Since(a); !got.Equal(want) {
			t.Errorf("the gang waits since %v, want %v", got, want)
		}
	}
	cycle := func(told time.Time) {
		t.Helper()
		c.wantNext("a")
		c.Begin(a, told, c.now)
		c.refused("a", Refusal{})
		c.after(time.Minute)
	}
	since(time.Time{})
	cycle(c.now)
	since(start)
	cycle(c.now)
	since(start)
	cycle(start.Add(-time.Hour)) // it is learned from elsewhere
	since(start.Add(-time.Hour))
	cycle(time.Time{}) // which may be nonsense
	since(start.Add(-time.Hour))
	c.Settled(a)
	since(time.Time{})
	began := c.now
	cycle(time.Time{})
	since(began)
	c.Settled(a)
	began = c.now
	cycle(c.now.Add(time.Hour))
	since(began)
}

// TestGangsThatDifferInNothingButTheirKindTakeTurnsInOrder: a job may have groups of two kinds, of one name, that were
// made in one second. Which of them is ahead is the same for whoever asks.
func TestGangsThatDifferInNothingButTheirKindTakeTurnsInOrder(t *testing.T) {
	of := func(d dialect.Dialect) Rank {
		return Rank{Created: start, Key: dialect.Key{Dialect: d, Namespace: "default", Name: "job"}}
	}
	for _, first := range []dialect.Dialect{dialect.SchedulerPlugins, dialect.Volcano} {
		q := New()
		for _, d := range []dialect.Dialect{first, dialect.SchedulerPlugins + dialect.Volcano - first} {
			q.Enter(of(d), true, start)
		}
		if next, ok := q.Next(start); !ok || next != of(dialect.SchedulerPlugins) {
			t.Errorf("%v is next, want the one of scheduler-plugins, whichever came first", next)
		}
	}
}
