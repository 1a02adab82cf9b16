// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Draft is a Plan in the making. Decisions of all cores embed one.
type Draft[S any] struct {
	Plan Plan[S]
	// Stage is the index of the stage that runs, or ran last; once all stages have run, the number of stages.
	Stage int
	// Told are the events of this round that need not be sent again as long as they hold.
	Told Told

	known *Known[S]
	clock time.Time
	// before are the events of the last round.
	before Told
	// checks says that the Plan has CheckStatus, for the unchecked objects among others.
	checks    bool
	unchecked []types.UID
}

// NewDraft returns a Draft of the next Plan. `told` are the events that earlier rounds have sent and that still hold.
// now is the current time.
func NewDraft[S any](known *Known[S], told Told, now time.Time) Draft[S] {
	return Draft[S]{known: known, before: told, clock: now}
}

// Act plans an action.
func (d *Draft[S]) Act(action Action) { d.Plan.Actions = append(d.Plan.Actions, action) }

// ActIfCurrent plans an action that identifies its object by name alone. Until the API server has confirmed the status
// with which the controller started, it plans to check the status instead.
func (d *Draft[S]) ActIfCurrent(action Action) {
	if d.known.Current {
		d.Act(action)
	} else {
		d.CheckStatus("")
	}
}

// ActIfChecked plans an action on an object that the status does not mention. It first makes sure that the known status
// is not older than the object. Known.Current does not show that: another controller may lead by now, and have created
// the object after it wrote a newer status.
func (d *Draft[S]) ActIfChecked(action Action) {
	if d.known.Checked[action.UID] {
		d.Act(action)
	} else {
		d.CheckStatus(action.UID)
	}
}

// CheckStatus plans to check whether the known status is the stored one. object is the UID of the object that makes the
// check necessary, or "".
func (d *Draft[S]) CheckStatus(object types.UID) {
	d.checks = true
	if object != "" {
		d.unchecked = append(d.unchecked, object)
	}
}

// PlanCheck plans the CheckStatus that was asked for, if any was.
func (d *Draft[S]) PlanCheck(owner metav1.Object) {
	if d.checks {
		slices.Sort(d.unchecked)
		d.Act(Action{Verb: CheckStatus, Name: owner.GetName(), UID: owner.GetUID(), Seen: d.unchecked})
	}
}

// DeleteOwner plans to delete the owner if the deletion is due and the stored status is known. DeleteOwner reports
// whether it did.
func (d *Draft[S]) DeleteOwner(due time.Time, deletion Action) bool {
	switch {
	case d.known.Deleted[deletion.UID]:
		return false
	case d.clock.Before(due):
		d.WakeAt(due)
		return false
	}
	d.ActIfChecked(deletion)
	return d.known.Checked[deletion.UID]
}

// Persist asks for the status to be written with at least this urgency.
func (d *Draft[S]) Persist(urgency Persist) { d.Plan.Persist = max(d.Plan.Persist, urgency) }

// WakeAt asks for another round at a time. Zero is never.
func (d *Draft[S]) WakeAt(at time.Time) {
	if !at.IsZero() && (d.Plan.WakeAt.IsZero() || at.Before(d.Plan.WakeAt)) {
		d.Plan.WakeAt = at
	}
}

// Fail reports what makes no sense, while all else goes on.
func (d *Draft[S]) Fail(err error) { d.Plan.Err = errors.Join(d.Plan.Err, err) }

// Tell plans an event.
func (d *Draft[S]) Tell(warning bool, reason, format string, args ...any) {
	d.Plan.Events = append(d.Plan.Events, Event{Warning: warning, Reason: reason, Message: CutMessage(fmt.Sprintf(format, args...))})
}

// WarnOnce warns of something that may hold for longer.
func (d *Draft[S]) WarnOnce(reason, format string, args ...any) {
	d.Once(true, reason, format, args...)
}

// Once plans an event about a state that lasts. The event is not sent again before a pause is over, unless another
// controller takes over.
func (d *Draft[S]) Once(warning bool, reason, format string, args ...any) {
	message := CutMessage(fmt.Sprintf(format, args...))
	if !d.HasTold(reason, message) {
		d.Tell(warning, reason, "%s", message)
	}
	d.NoteTold(reason, message)
}

// HasTold reports whether the current stage has sent a message, in this round or in the previous one.
func (d *Draft[S]) HasTold(reason, message string) bool {
	return d.before.Has(d.Stage, reason, message) || d.Told.Has(d.Stage, reason, message)
}

// NoteTold records that the stage has sent a message.
func (d *Draft[S]) NoteTold(reason, message string) { d.Told.Note(d.Stage, reason, message) }

// Settle sets the status of the Plan to `next`, or to the known status if `same` reports that both are equal. If the
// API server has another status, Settle also plans a write.
func (d *Draft[S]) Settle(next *S, same func(a, b *S) bool) {
	d.Plan.Status = next
	for _, known := range []*S{d.known.Status, d.known.Persisted} {
		if known != nil && known != d.Plan.Status && same(known, next) {
			d.Plan.Status = known
		}
	}
	switch {
	case d.Plan.Status == d.known.Persisted:
		d.Plan.Persist = PersistNone
	case d.Plan.Persist == PersistNone:
		d.Plan.Persist = PersistLater
	}
}

// Same reports whether two statuses are semantically equal. Use it for statuses with few objects, since it compares
// every field.
func Same[S any](a, b *S) bool { return apiequality.Semantic.DeepEqual(a, b) }

// MaxMessage bounds what conditions and events say, in bytes.
const MaxMessage = 1024

// CutMessage shortens a message that is too long.
func CutMessage(message string) string { return text.Shorten(message, MaxMessage) }
