// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Plan is a decision about one owner, as data. S is the type of the status.
type Plan[S any] struct {
	// Status is the next one. It is the very value that is persisted if both say the same, so that "was this written?"
	// is a comparison of pointers.
	Status *S
	// Persist says whether and how soon Status has to be written.
	Persist Persist
	// Starting says that Pods of the owner are about to start: changes of other Pods may wait for each other.
	Starting bool
	// Settled says that Status is the first that others wait for, such as the status in which all Pods run. The status
	// is written soon, though nothing depends on it.
	Settled bool
	// Actions are what the persisted status allows now, in the order of their beginning.
	Actions []Action
	// Before runs before Status is written: this logs what is about to be overwritten. Nil for nothing.
	Before func()
	// Events are recorded after Status was written. The triggers are about differences from the Status of the last Plan:
	// each is planned once, however long the write waits.
	Events []Event
	// WakeAt is when time alone may change the decision. Zero if never.
	WakeAt time.Time
	// Over says that nothing is left to do, nor to be seen, before WakeAt or a change of the owner: once Status is stored,
	// all that is known of the owner may be forgotten until then.
	Over bool
	// Err is what makes no sense in what was decided about. Err is reported as an error of the whole sync, which is
	// backed off. All else that is in the Plan is done nevertheless.
	Err error
}

// String shows the plan in a few lines.
func (p Plan[S]) String() string {
	var b strings.Builder
	b.WriteString(p.Persist.String())
	for _, action := range p.Actions {
		fmt.Fprintf(&b, "\n%s", action)
	}
	if !p.WakeAt.IsZero() {
		fmt.Fprintf(&b, "\nwake at %s", p.WakeAt.UTC().Format(time.RFC3339))
	}
	if p.Err != nil {
		fmt.Fprintf(&b, "\nerror: %v", p.Err)
	}
	return b.String()
}

// Persist is how soon a status has to be written.
type Persist int

const (
	// PersistNone: nothing changed.
	PersistNone Persist = iota
	// PersistLater: the change gates nothing and may wait for others.
	PersistLater
	// PersistSoon: actions on single Pods wait for this; so may other Pods, so that a wave of changes in a large owner
	// is worth a short wait.
	PersistSoon
	// PersistNow: the owner waits for the write.
	PersistNow
)

// String names the urgency.
func (p Persist) String() string {
	return [...]string{"no write", "write later", "write soon", "write now"}[p]
}

// Kept is how much of a status the API server keeps.
type Kept int

const (
	// KeptUnknown: the controller has not looked since it began.
	KeptUnknown Kept = iota
	// KeptWhole: everything.
	KeptWhole
	// KeptInPart: the CRD of the owner is another product's, and lacks fields. Dropped fields are lost with the
	// controller.
	KeptInPart
)

// Event reports a change to users.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

// Entropy supplies what a decision may not invent.
type Entropy interface {
	// NewUID returns an identifier that was never returned before.
	NewUID() types.UID
	// Between returns a number drawn evenly from least to most, both inclusive.
	Between(least, most int64) int64
}
