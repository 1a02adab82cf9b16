// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// cause says why requests for an owner fail. With a name, the cause concerns one object; with a group, all objects of
// the group; with neither, all requests of the same kind.
type cause struct {
	does        string
	group, name string
}

// Causes that are not of an action.
var (
	// statusWrite is the cause of a status that could not be written.
	statusWrite = cause{does: "WriteStatus"}
	// wholeSync is the cause of a sync that failed as a whole.
	wholeSync = cause{does: "Sync"}
)

// causesOf returns the causes that an action may fail for.
func causesOf(action plan.Action) [2]cause {
	does := action.Does()
	return [2]cause{{does: does, group: action.Group}, {does: does, name: action.Name}}
}

// causeOf returns the cause of a failed action. Objects of a group mostly fail for the same reason, so the cause is
// that of the group. An object without a group has a cause of its own, unless the API server answers no request at all.
func causeOf(action plan.Action, err error) cause {
	causes := causesOf(action)
	var taken *nameTakenError
	if !errors.As(err, &taken) && (action.Group != "" || isUnavailable(err)) {
		return causes[0]
	}
	return causes[1]
}

// isUnavailable reports whether an error is due to the state of the API server, and not to the object.
func isUnavailable(err error) bool {
	var network net.Error
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &network) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// pauseOf returns how long the API server asks to be left alone.
func pauseOf(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// nameTakenError is a creation that found a foreign object of the name.
type nameTakenError struct {
	resource, name string
	object         metav1.Object
	// controller of the object, empty without one.
	controller string
}

func (e *nameTakenError) Error() string {
	owner := "an object that nothing controls"
	if e.controller != "" {
		owner = "one that " + e.controller + " controls"
	}
	return fmt.Sprintf("the name of %s %s is taken by %s", e.resource, e.name, owner)
}

// Status says that there is such an object already, as the API server does.
func (e *nameTakenError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Message: e.Error()}
}

// maxBlockMessage bounds the message of a block, in bytes.
const maxBlockMessage = 512

// blockOf describes a creation or an update that is refused for now. Failures of other requests block nothing, and have
// no description.
func blockOf(action plan.Action, err error) (plan.Block, bool) {
	if action.Verb != plan.Create && action.Verb != plan.Update {
		return plan.Block{}, false
	}
	message := text.Shorten(fmt.Sprintf("%s: %v", action, err), maxBlockMessage)
	return plan.Block{
		Verb: action.Verb, Kind: action.Kind, Group: action.Group, Name: action.Name,
		Reason: plan.BlockReason(err), Message: message,
	}, true
}

// refuse notes that an action has failed for now.
func (p *pass[O, S]) refuse(action plan.Action, err error) {
	m, why := p.memory, causeOf(action, err)
	p.pace.Refusals.Refused(why, p.now(), pauseOf(err), p.owners.entropy.Between)
	if action.Group != "" {
		if m.failed[refOf(action)] {
			clear(m.failed) // All of its group have had their try: it begins anew.
		}
		m.failed[refOf(action)] = true
	}
	block, blocked := blockOf(action, err)
	if blocked && !sameBlock(m.blocks[why], block) {
		m.blocks[why] = block
		p.blocksChanged = true
	}
}

// sameBlock reports whether two blocks differ only in names of objects and in numbers. Each try may concern another
// object of the group, and the numbers of a quota change. If the blocks are the same, the first one stays, so that not
// every try changes the status.
func sameBlock(a, b plan.Block) bool {
	return a.Name != "" && a.Verb == b.Verb && a.Kind == b.Kind && a.Group == b.Group && a.Reason == b.Reason &&
		wording(a.Message, a.Name) == wording(b.Message, b.Name)
}

// number is a word with a digit: an amount, or an identifier.
var number = regexp.MustCompile(`\w*\d\w*`)

// wording returns a message about an object without the name and without numbers.
func wording(message, name string) string {
	return number.ReplaceAllString(strings.ReplaceAll(message, name, ""), "")
}

// grant notes that an action has gone through.
func (p *pass[O, S]) grant(action plan.Action) {
	delete(p.memory.failed, refOf(action))
	for _, why := range causesOf(action) {
		p.pace.Refusals.Granted(why)
		p.unblock(why)
	}
	if p.pace.Refusals.None() && p.memory.complaint == ReasonActionFailed {
		p.memory.complaint = "" // The next failure is another one.
	}
}

func (p *pass[O, S]) unblock(why cause) {
	if _, ok := p.memory.blocks[why]; ok {
		delete(p.memory.blocks, why)
		p.blocksChanged = true
	}
}

// keepCauses forgets the causes of actions that are not planned any more.
func (p *pass[O, S]) keepCauses(planned []plan.Action, writes bool) {
	if p.pace.Refusals.None() && len(p.memory.failed) == 0 && len(p.memory.blocks) == 0 {
		return
	}
	keep, refs := map[cause]bool{wholeSync: true, statusWrite: writes}, map[ref]bool{}
	for _, action := range planned {
		refs[refOf(action)] = true
		for _, why := range causesOf(action) {
			keep[why] = true
		}
	}
	p.pace.Refusals.Keep(func(why cause) bool { return keep[why] })
	for why := range p.memory.blocks {
		if !keep[why] {
			p.unblock(why)
		}
	}
	for object := range p.memory.failed {
		if !refs[object] {
			delete(p.memory.failed, object)
		}
	}
}

// admitted returns the actions that may be tried now; actions that have failed before come last. While tries fail, only
// one action that has failed before is among them: the action that was tried longest ago.
func (p *pass[O, S]) admitted(actions []plan.Action) []plan.Action {
	if p.pace.Refusals.None() && p.pace.Repeats.None() {
		return actions
	}
	failed := p.memory.failed
	ordered := slices.Clone(actions)
	slices.SortStableFunc(ordered, func(a, b plan.Action) int {
		return cmp.Compare(rank(failed[refOf(a)]), rank(failed[refOf(b)]))
	})
	var free []plan.Action
	var try *plan.Action
	for i := range ordered {
		switch due, refused := p.tryDue(ordered[i]); {
		case !refused, !p.pace.Refusals.Failing() && !due.After(p.now()):
			free = append(free, ordered[i])
		case due.After(p.now()):
		case try == nil || p.lastTried(ordered[i]).Before(p.lastTried(*try)):
			try = &ordered[i]
		}
	}
	if try != nil {
		free = append(free, *try)
	}
	return free
}

// lastTried returns when an action with the same cause as this one was last tried; zero if none has failed.
func (p *pass[O, S]) lastTried(action plan.Action) time.Time {
	var last time.Time
	for _, why := range causesOf(action) {
		if at := p.pace.Refusals.Tried(why); at.After(last) {
			last = at
		}
	}
	return last
}

// tryDue returns when an action may be run. refused is false if nothing holds it back. An action is held back if it
// failed, if another object of its group failed, or if it would repeat a write that another client has undone.
func (p *pass[O, S]) tryDue(action plan.Action) (due time.Time, refused bool) {
	for _, why := range causesOf(action) {
		if p.pace.Refusals.Refuses(why) {
			refused = true
			if at := p.pace.Refusals.Due(why); at.After(due) {
				due = at
			}
		}
	}
	if at := p.pace.Repeats.Due(writeOf(action)); at.After(p.now()) && at.After(due) {
		due, refused = at, true
	}
	return due, refused
}

// writeOf returns what is repeated if an action has to be run again.
func writeOf(action plan.Action) cause { return causesOf(action)[1] }

// noteRepeat records whether a write repeats the last write of the object. Writes of an earlier object with the same
// name do not count.
func (p *pass[O, S]) noteRepeat(r result) {
	if r.remembered == nil || r.action.Content == "" {
		return
	}
	object, now := refOf(r.action), content{says: r.action.Content, of: r.remembered.GetUID(), at: p.now()}
	before := p.contents[object]
	if before.says == now.says && (before.of == now.of || r.action.Verb == plan.Create) {
		p.pace.Repeats.Repeated(writeOf(r.action), p.now())
	} else {
		p.pace.Repeats.Changed(writeOf(r.action))
	}
	p.contents[object] = now
}

// nextTry returns when the first of the failed actions may be tried again; zero if none has failed.
func (p *pass[O, S]) nextTry(actions []plan.Action) time.Time {
	var next time.Time
	if p.pace.Refusals.None() && p.pace.Repeats.None() {
		return next
	}
	for _, action := range actions {
		if due, refused := p.tryDue(action); refused && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// taken returns the objects to create whose names belonged to other owners' objects when the engine last read them.
func (m *memory[O, S]) taken() map[ref]bool {
	objects := map[ref]bool{}
	for _, block := range m.blocks {
		if block.Reason == plan.ReasonNameTaken {
			objects[ref{block.Kind, block.Name}] = true
		}
	}
	return objects
}

// blocked returns the creations and updates that are refused, in a fixed order.
func (m *memory[O, S]) blocked() []plan.Block {
	return slices.SortedFunc(maps.Values(m.blocks), func(a, b plan.Block) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}
