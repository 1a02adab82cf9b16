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
	// Status is the next status. If the written status is equal to it, it is the same pointer, so that comparing
	// pointers shows whether this status was written.
	Status *S
	// Persist says whether and how soon Status has to be written.
	Persist Persist
	// Starting means that Pods of the owner are about to start. The write of the status may then wait longer, so that
	// one write covers the changes of many Pods.
	Starting bool
	// Settled means that clients wait for this status, such as the first in which all Pods run. It is written soon,
	// although no action depends on it.
	Settled bool
	// Actions are what the persisted status allows now, in the order of their beginning.
	Actions []Action
	// Before is called before Status is written, to log what the write will overwrite. It may be nil.
	Before func()
	// Events are sent once Status was written. An event reports a difference from the Status of the last Plan, so each
	// event is planned once, however long the write waits.
	Events []Event
	// WakeAt is when time alone may change the decision. Zero if never.
	WakeAt time.Time
	// Over means that there is nothing to do or to observe before WakeAt or a change of the owner. Once Status is
	// stored, everything known of the owner may be forgotten until then.
	Over bool
	// Err is what is wrong with the owner. The whole sync counts as failed and is backed off, but the engine carries
	// out the rest of the Plan first.
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
	// PersistSoon: actions on single Pods wait for this status. In a large owner, changes of further Pods are collected
	// for a short time before it is written.
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
	// KeptInPart: the owner's CRD is another product's and lacks fields. What it drops is lost when the controller
	// restarts.
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
	// Between returns a number drawn evenly from `least` to `most`, both inclusive.
	Between(least, most int64) int64
}
