// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

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

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// cause is what a request about a Framework fails for: one object if it has a name,
// the Pods of one role if it has a role, or else all requests of a kind.
type cause struct {
	kind       lifecycle.ActionKind
	role, name string
}

// Causes that are not of an action.
var (
	// statusWrite is the cause of a status that could not be written.
	statusWrite = cause{kind: "WriteStatus"}
	// wholeSync is the cause of a sync that failed as a whole.
	wholeSync = cause{kind: "Sync"}
)

// causesOf are the causes that an action may fail for.
func causesOf(action lifecycle.Action) [2]cause {
	shared := cause{kind: action.Kind}
	if action.Kind == lifecycle.CreatePod {
		shared.role = action.Role
	}
	return [2]cause{shared, {kind: action.Kind, name: action.Name}}
}

// causeOf is the cause that an action has failed for. A Pod of a role is most likely
// refused for what all Pods of the role have in common. Any other object stands for
// itself, unless the API server answers nobody.
func causeOf(action lifecycle.Action, err error) cause {
	causes := causesOf(action)
	var taken *nameTakenError
	if !errors.As(err, &taken) && (action.Kind == lifecycle.CreatePod || isUnavailable(err)) {
		return causes[0]
	}
	return causes[1]
}

// isUnavailable says whether an error tells of the API server and not of the object.
func isUnavailable(err error) bool {
	var network net.Error
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &network) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// pauseOf is how long the API server asks to be left alone.
func pauseOf(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// nameTakenError is a creation that found a foreign object of the name.
type nameTakenError struct {
	resource, name string
	object         metav1.Object
	// controller of the object, empty if it has none.
	controller string
}

func (e *nameTakenError) Error() string {
	owner := "an object that nothing controls"
	if e.controller != "" {
		owner = "one that " + e.controller + " controls"
	}
	return fmt.Sprintf("the name of %s %s is taken by %s", e.resource, e.name, owner)
}

// maxBlockMessage bounds the message of a block, in bytes.
const maxBlockMessage = 512

// blockOf tells the user of a creation that is refused for now. Other requests that
// fail block nothing.
func blockOf(action lifecycle.Action, err error) (lifecycle.Block, bool) {
	switch action.Kind {
	case lifecycle.CreateConfigMap, lifecycle.CreatePodGroup, lifecycle.UpdatePodGroup, lifecycle.CreatePod:
	default:
		return lifecycle.Block{}, false
	}
	message := text.Shorten(fmt.Sprintf("%s: %v", action, err), maxBlockMessage)
	block := lifecycle.Block{Role: action.Role, Reason: lifecycle.BlockReason(err), Message: message}
	var taken *nameTakenError
	if errors.As(err, &taken) {
		block.Reason = frameworkv1.ReasonNameTaken
	}
	return block, true
}

// refuse notes that an action has failed for now.
func (p *pass) refuse(action lifecycle.Action, err error) {
	m, why := p.memory, causeOf(action, err)
	p.pace.Refusals.Refused(why, p.now(), pauseOf(err), p.controller.entropy.Between)
	if action.Kind == lifecycle.CreatePod {
		if m.failed[action.Name] {
			clear(m.failed) // All of its role have had their try: it begins anew.
		}
		m.failed[action.Name] = true
	}
	block, blocked := blockOf(action, err)
	if known := m.blocks[why]; blocked && !sameBlock(known.Block, known.name, block, action.Name) {
		m.blocks[why] = namedBlock{Block: block, name: action.Name}
		p.blocksChanged = true
	}
}

// namedBlock is a block with the name of the object whose creation has shown it.
type namedBlock struct {
	lifecycle.Block
	name string
}

// sameBlock says whether two blocks say the same in other words: each try may be that of
// another Pod, and the numbers of a quota change with what others use. The first one
// stays, so that not every try writes the status.
func sameBlock(a lifecycle.Block, nameA string, b lifecycle.Block, nameB string) bool {
	return nameA != "" && a.Role == b.Role && a.Reason == b.Reason &&
		wording(a.Message, nameA) == wording(b.Message, nameB)
}

// number is a word with a digit: an amount, or an identifier.
var number = regexp.MustCompile(`\w*\d\w*`)

// wording is a message about an object without its name and without numbers.
func wording(message, name string) string {
	return number.ReplaceAllString(strings.ReplaceAll(message, name, ""), "")
}

// grant notes that an action has gone through.
func (p *pass) grant(action lifecycle.Action) {
	delete(p.memory.failed, action.Name)
	for _, why := range causesOf(action) {
		p.pace.Refusals.Granted(why)
		p.unblock(why)
	}
	if p.pace.Refusals.None() && p.memory.complaint == reasonActionFailed {
		p.memory.complaint = "" // The next failure is another one.
	}
}

func (p *pass) unblock(why cause) {
	if _, ok := p.memory.blocks[why]; ok {
		delete(p.memory.blocks, why)
		p.blocksChanged = true
	}
}

// keepCauses forgets the causes of actions that are not planned any more.
func (p *pass) keepCauses(planned []lifecycle.Action, writes bool) {
	if p.pace.Refusals.None() && len(p.memory.failed) == 0 {
		return
	}
	keep, names := map[cause]bool{wholeSync: true, statusWrite: writes}, map[string]bool{}
	for _, action := range planned {
		names[action.Name] = true
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
	for name := range p.memory.failed {
		if !names[name] {
			delete(p.memory.failed, name)
		}
	}
}

// admitted are the actions that may be tried now, those last that have failed before.
// While tries fail, it is one at most of the refused ones: that which was tried longest
// ago, and tries for the others.
func (p *pass) admitted(actions []lifecycle.Action) []lifecycle.Action {
	if p.pace.Refusals.None() && p.pace.Repeats.None() {
		return actions
	}
	failed := p.memory.failed
	ordered := slices.Clone(actions)
	slices.SortStableFunc(ordered, func(a, b lifecycle.Action) int {
		return cmp.Compare(rank(failed[a.Name]), rank(failed[b.Name]))
	})
	var free []lifecycle.Action
	var try *lifecycle.Action
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

// lastTried is when an action was last tried, or another one that has a cause in common
// with it. Zero if it is not refused.
func (p *pass) lastTried(action lifecycle.Action) time.Time {
	var last time.Time
	for _, why := range causesOf(action) {
		if at := p.pace.Refusals.Tried(why); at.After(last) {
			last = at
		}
	}
	return last
}

// tryDue is when an action may be tried that is refused at present, for one cause or
// for both, or whose last effect somebody has undone.
func (p *pass) tryDue(action lifecycle.Action) (due time.Time, refused bool) {
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

// writeOf is what is repeated if an action has to be run again.
func writeOf(action lifecycle.Action) cause { return causesOf(action)[1] }

// noteRepeat notes whether a PodGroup had to be written again as it was written before.
// Tasks whose objects are deleted end, and have the delays of their retries.
func (p *pass) noteRepeat(r result) {
	if r.podGroup == nil {
		return
	}
	wanted := r.action.PodGroup
	if before := p.memory.wantedPodGroup; before != nil && sameMembers(before, wanted) {
		p.pace.Repeats.Repeated(writeOf(r.action), p.now())
	} else {
		p.pace.Repeats.Changed(writeOf(r.action))
	}
	p.memory.wantedPodGroup = wanted
}

// sameMembers says whether two PodGroups are of one attempt and want the same members.
func sameMembers(a, b *schedulingv1alpha1.PodGroup) bool {
	owner := metav1.GetControllerOfNoCopy(a)
	return owner != nil && controlled.By(owner.UID, b) && a.Spec.MinMember == b.Spec.MinMember &&
		maps.Equal(a.Spec.MinRoleMember, b.Spec.MinRoleMember)
}

// nextTry is when the first of the refused actions may be tried. Zero if none is.
func (p *pass) nextTry(actions []lifecycle.Action) time.Time {
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

// taken are the names that foreign objects had when they were last looked at.
func (m *memory) taken() map[string]bool {
	names := map[string]bool{}
	for _, block := range m.blocks {
		if block.Reason == frameworkv1.ReasonNameTaken {
			names[block.name] = true
		}
	}
	return names
}

// blocked are the creations that are refused, in a fixed order.
func (m *memory) blocked() []lifecycle.Block {
	blocks := make([]lifecycle.Block, 0, len(m.blocks))
	for _, block := range m.blocks {
		blocks = append(blocks, block.Block)
	}
	slices.SortFunc(blocks, func(a, b lifecycle.Block) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return blocks
}
