// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// TestOnlyWhatSomebodyUndoesIsRepeated: a change of an object that was made anew waits for
// nothing, though it is the change that the one before it got. So it is with the mark of
// a Pod that is to be restarted, restart after restart.
func TestOnlyWhatSomebodyUndoesIsRepeated(t *testing.T) {
	type write struct {
		verb plan.Verb
		uid  types.UID
	}
	tests := map[string]struct {
		writes   []write
		repeated bool
	}{
		"an object that was changed back":     {[]write{{plan.Update, "a"}, {plan.Update, "a"}}, true},
		"one that was changed after creation": {[]write{{plan.Create, "a"}, {plan.Update, "a"}}, true},
		"one that was deleted":                {[]write{{plan.Create, "a"}, {plan.Create, "b"}}, true},
		"another one of the name":             {[]write{{plan.Update, "a"}, {plan.Update, "b"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pass[*metav1.PartialObjectMetadata, int]{
				owners:   &Owners[*metav1.PartialObjectMetadata, int]{clock: clock.RealClock{}},
				contents: map[ref]content{},
				pace:     &pacing.Pace[cause]{},
			}
			for _, w := range tc.writes {
				p.noteRepeat(result{
					action:     plan.Action{Verb: w.verb, Kind: "Pod", Name: "p", Content: "restart"},
					remembered: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: w.uid}},
				})
			}
			if repeated := !p.pace.Repeats.None(); repeated != tc.repeated {
				t.Errorf("taken for a repeat: %v, want %v", repeated, tc.repeated)
			}
		})
	}
}

// TestWritesThatHaveLastedAreForgotten: an owner may live for years, and have objects of
// ever new names.
func TestWritesThatHaveLastedAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	p := &pass[*metav1.PartialObjectMetadata, int]{
		owners: &Owners[*metav1.PartialObjectMetadata, int]{clock: clock, core: sizeless{}},
		entry:  &entry[*metav1.PartialObjectMetadata]{},
		memory: &memory[*metav1.PartialObjectMetadata, int]{objects: newObjects()}, contents: map[ref]content{},
		pace: &pacing.Pace[cause]{},
	}
	write := func(name string) {
		p.noteRepeat(result{
			action:     plan.Action{Verb: plan.Create, Kind: "Secret", Name: name, Content: "key"},
			remembered: &metav1.PartialObjectMetadata{},
		})
	}
	for i := range 10_000 {
		write(fmt.Sprint("secret-", i))
		write(fmt.Sprint("secret-", i)) // Somebody has deleted the first one.
		p.prune(&View[*metav1.PartialObjectMetadata, int]{})
		clock.SetTime(clock.Now().Add(10 * time.Second))
	}
	if known := len(p.contents); known > 2*pruneSlack {
		t.Errorf("%d writes are remembered, want those of the last minutes", known)
	}
	last := plan.Action{Verb: plan.Create, Kind: "Secret", Name: "secret-9999"}
	if p.pace.Repeats.Due(writeOf(last)).IsZero() {
		t.Error("the last write is not known to be a repeat")
	}
	clock.SetTime(clock.Now().Add(p.pace.Repeats.Lasting()))
	p.prune(&View[*metav1.PartialObjectMetadata, int]{})
	if !p.pace.Repeats.None() {
		t.Error("repeats are remembered that have ended")
	}
}

// TestAStatusThatIsReadAnewEndsNoRowOfRepeats: somebody who undoes writes, and writes the status of the
// owner, too, does not have them repeated at once.
func TestAStatusThatIsReadAnewEndsNoRowOfRepeats(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	o := &Owners[*metav1.PartialObjectMetadata, int]{clock: clock, core: sizeless{}}
	owner := &entry[*metav1.PartialObjectMetadata]{owner: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "u"}}}
	create := plan.Action{Verb: plan.Create, Kind: "Pod", Name: "p", Content: "start 1"}
	for range 5 {
		known, err := o.known.of(owner.key(), owner, o.core)
		if err != nil {
			t.Fatal(err)
		}
		p := &pass[*metav1.PartialObjectMetadata, int]{owners: o, memory: known.memory, contents: known.contents, pace: known.pace}
		p.noteRepeat(result{action: create, remembered: &metav1.PartialObjectMetadata{}})
		o.known.reread(owner.key())
	}
	known, err := o.known.of(owner.key(), owner, o.core)
	if err != nil {
		t.Fatal(err)
	}
	if wait := known.pace.Repeats.Due(writeOf(create)).Sub(clock.Now()); wait != 8*pacing.MinBackoff {
		t.Errorf("after four repeats the next one waits %v, want %v", wait, 8*pacing.MinBackoff)
	}
}

// TestAStatusThatIsReadAnewForgetsNoWrite: when a user changes the spec while a status is written, the controller reads the status anew.
// If the controller forgot then that it had just marked a Pod, a stale cache would show the Pod without the mark, and the controller would
// act twice on the same event.
func TestAStatusThatIsReadAnewForgetsNoWrite(t *testing.T) {
	o := &Owners[*metav1.PartialObjectMetadata, int]{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), core: sizeless{}}
	owner := &entry[*metav1.PartialObjectMetadata]{owner: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "u"}}}
	marked := ref{"Pod", "p"}
	memoryNow := func() *memory[*metav1.PartialObjectMetadata, int] {
		known, err := o.known.of(owner.key(), owner, o.core)
		if err != nil {
			t.Fatal(err)
		}
		return known.memory
	}
	before := memoryNow()
	before.ahead[marked] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"mark": "restart"}}}
	before.deleted["service"] = true
	o.known.rereadStatus(owner.key())
	after := memoryNow()
	if after == before || after.ahead[marked] == nil || !after.deleted["service"] {
		t.Error("the memory that was made anew does not know what was written and deleted")
	}

	o.known.rereadStatus(owner.key())
	owner.owner.UID = "another"
	if another := memoryNow(); len(another.ahead)+len(another.deleted) > 0 {
		t.Error("an owner of the same name inherits what is known of the objects of the one before")
	}
	after = memoryNow()
	after.deleted["restored"] = true
	o.known.reread(owner.key())
	if len(memoryNow().deleted) > 0 {
		t.Error("after etcd was restored a deletion is still known that is not done any more")
	}
}

// sizeless is a core whose owners have no Pods.
type sizeless struct {
	Core[*metav1.PartialObjectMetadata, int]
}

func (sizeless) NewDecider() Decider[*metav1.PartialObjectMetadata, int] { return nil }

func (sizeless) Size(*metav1.PartialObjectMetadata, *int) int { return 0 }
