// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
)

// A live look asks the API server for what the caches can't show: whether an object that has left the caches is gone,
// or has only lost its label; what an object is that has the name of one to be created; whether the status is the
// stored one. A look at all objects of an owner now and then (list.go) finds what a watch may have lost.

// lookFor reads the object of an action. `gone` is the object's UID if it does not exist any more. If the action's
// owner controls another object with the same name, `found` is that object.
func lookFor(ctx context.Context, client Client, namespace string, action plan.Action) (found metav1.Object, gone types.UID, err error) {
	live, err := client.Get(ctx, namespace, action.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, action.UID, nil
	case err != nil:
		return nil, "", err
	case live.GetUID() == action.UID:
		return live, "", nil
	case succeeds(live, action):
		return live, action.UID, nil
	default:
		return nil, action.UID, nil
	}
}

// succeeds reports whether an object has the name of a missing object, and the same owner.
func succeeds(object metav1.Object, look plan.Action) bool {
	return look.Owner != "" && object.GetName() == look.Name && controlled.By(look.Owner, object)
}

// ofOwner returns the existing object of a name, if the owner is right.
func ofOwner(ctx context.Context, client Client, namespace string, action plan.Action) (metav1.Object, error) {
	live, err := client.Get(ctx, namespace, action.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for the %s that has its name: %w", action.Kind, err)
	}
	if !controlled.By(action.Owner, live) {
		taken := &nameTakenError{resource: action.Kind, name: action.Name, object: live}
		if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
			taken.controller = controller.Kind + " " + controller.Name
		}
		return nil, taken
	}
	return live, nil
}

// presentOf returns the object with the action's name if the action's owner controls the object, otherwise nil.
func presentOf(ctx context.Context, client Client, namespace string, action plan.Action) (metav1.Object, error) {
	live, err := client.Get(ctx, namespace, action.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for one that is there: %w", err)
	case !controlled.By(action.Owner, live):
		return nil, nil
	default:
		return live, nil
	}
}

// fewLooks is how many objects of a kind are read one by one at most. More are read by one list of the namespace, which
// takes the API server less time. It also limits how many objects are read again per LookInterval: if a user removes
// the labels from an owner's objects, the namespace must not be listed again and again.
const fewLooks = 100

// isLookAtOne reports whether an action reads a single object that a list of its kind would also contain.
func isLookAtOne(action plan.Action) bool {
	return action.Verb == plan.LookFor || action.Verb == plan.ConfirmNo
}

// lookForMany returns the kinds for which so many objects are to be read that one list costs less than single reads.
func lookForMany(actions []plan.Action) map[string]bool {
	looks, many := map[string]int{}, map[string]bool{}
	for _, action := range actions {
		if isLookAtOne(action) {
			does := action.Does()
			looks[does]++
			many[does] = looks[does] > fewLooks
		}
	}
	return many
}

// look carries out the reads that may take several requests: checking the status, listing a kind, and finding many
// objects in one list. At least one read begins; after that, reads that have not begun when the turn is over are
// returned in `left`. acted reports that a read succeeded.
func (p *pass[O, S]) look(ctx context.Context, looks []plan.Action) (acted bool, left []plan.Action, err error) {
	begun := 0
	enough := func() bool { return begun > 0 && p.spent() }
	together := map[string][]plan.Action{}
	for _, action := range looks {
		switch action.Verb {
		case plan.LookFor, plan.ConfirmNo:
			together[action.Does()] = append(together[action.Does()], action)
			continue
		}
		if enough() {
			left = append(left, action)
			continue
		}
		begun++
		switch action.Verb {
		case plan.List:
			err = inLookTime(ctx, func(ctx context.Context) error { return p.list(ctx, action) })
		default:
			var current bool
			if current, err = p.checkStatus(ctx); err == nil && !current {
				return false, nil, errCacheBehind
			}
			if err == nil {
				p.memory.noteSeen(action.Seen)
			}
		}
		if err != nil {
			p.fail(ctx, action, err)
			continue
		}
		p.grant(action)
		acted = true
	}
	looked := false
	for does, wanted := range together {
		if enough() {
			left = append(left, wanted...)
			continue
		}
		begun++
		kind := wanted[0].Kind
		if err := inLookTime(ctx, func(ctx context.Context) error { return p.lookForAll(ctx, kind, wanted) }); err != nil {
			p.pace.Refusals.Refused(cause{does: does}, p.now(), pauseOf(err), p.owners.entropy.Between)
			p.owners.metrics.action(does, err)
			p.tellFailures(ctx, []error{fmt.Errorf("looking for %d objects of the kind %s: %w", len(wanted), kind, err)}, ReasonActionFailed)
			continue
		}
		looked = true
	}
	return acted || looked, left, nil
}

// inLookTime limits the time of a read that takes several requests, in addition to the limit of each request.
func inLookTime(ctx context.Context, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pacing.LookTime)
	defer cancel()
	return look(ctx)
}

// fail records and reports a failed request.
func (p *pass[O, S]) fail(ctx context.Context, action plan.Action, err error) {
	p.owners.metrics.action(action.Does(), err)
	p.refuse(action, err)
	p.tellFailures(ctx, []error{fmt.Errorf("%s: %w", action, err)}, ReasonActionFailed)
}

// lookForAll reads many objects of a kind by one list of the namespace, and records for each whether the object exists,
// is gone, or was replaced by another object. For ConfirmNo, which names no object, lookForAll records the names of the
// objects that the action's owner controls.
func (p *pass[O, S]) lookForAll(ctx context.Context, kind string, looks []plan.Action) error {
	byUID, byName := make(map[types.UID]bool, len(looks)), make(map[string]plan.Action, len(looks))
	for _, action := range looks {
		byUID[action.UID], byName[action.Name] = true, action
	}
	found, err := p.listed(ctx, kind, "", func(object metav1.Object) bool {
		return byUID[object.GetUID()] || succeeds(object, byName[object.GetName()])
	})
	if err != nil {
		return err
	}
	successors := make(map[string]metav1.Object)
	for uid, object := range found {
		if !byUID[uid] {
			successors[object.GetName()] = object
		}
	}
	for _, action := range looks {
		r := result{action: action, found: found[action.UID]}
		if r.found == nil {
			r.found, r.gone = successors[action.Name], action.UID
		}
		if r.found == nil && action.Verb == plan.ConfirmNo {
			r.outcome = &plan.Outcome{Action: action}
		}
		p.memory.remember(r)
		p.noteLook(r)
		p.grant(action)
	}
	return nil
}

func isLook(action plan.Action) bool { return action.Verb == plan.LookFor }

// noteMissing notes since when the objects are missing that a plan looks for.
func (p *pass[O, S]) noteMissing(actions []plan.Action) {
	missing := map[types.UID]bool{}
	for _, action := range actions {
		if isLook(action) {
			missing[action.UID] = true
			p.pace.Missing.First(action.UID, p.now())
		}
	}
	p.pace.Missing.Keep(func(uid types.UID) bool { return missing[uid] })
}

// withoutEarlyLooks removes the reads of objects that have just left the caches, because an event may still report how
// they ended. `due` is when the last of the removed reads may be done.
func (p *pass[O, S]) withoutEarlyLooks(actions []plan.Action) (kept []plan.Action, due time.Time) {
	if !slices.ContainsFunc(actions, isLook) { // As in most rounds: thousands are not copied.
		return actions, due
	}
	kept = make([]plan.Action, 0, len(actions))
	for _, action := range actions {
		if at := p.pace.Missing.At()[action.UID].Add(pacing.LookDelay); isLook(action) && at.After(p.now()) {
			if at.After(due) {
				due = at
			}
			continue
		}
		kept = append(kept, action)
	}
	return kept, due
}

// noteLook records when an object was read that the caches may not show.
func (p *pass[O, S]) noteLook(r result) {
	if r.found != nil {
		p.pace.Looks.Last(r.found.GetUID(), p.now())
	}
}

// looksAgain returns the due reads of objects that the caches don't show, beginning with the object that was read
// longest ago. `next` is when another read becomes due.
func (p *pass[O, S]) looksAgain() (due []plan.Action, next time.Time) {
	free := fewLooks
	for uid, at := range p.pace.Looks.At() {
		stray, ok := p.memory.lookedAt(uid)
		if !ok || p.owners.kinds[stray.kind].Unwatched && (ref{stray.kind, stray.object.GetName()}) != p.unwatched() {
			continue
		}
		again := at.Add(pacing.LookInterval)
		if !again.After(p.now()) {
			look := plan.Action{Verb: plan.LookFor, Kind: stray.kind, UID: uid, Name: stray.object.GetName()}
			if owner := metav1.GetControllerOfNoCopy(stray.object); owner != nil {
				look.Owner = owner.UID
			}
			due = append(due, look)
			continue
		}
		free--
		if next.IsZero() || again.Before(next) {
			next = again
		}
	}
	if len(due) <= max(0, free) {
		return due, next
	}
	looked := p.pace.Looks.At()
	slices.SortFunc(due, func(a, b plan.Action) int {
		return cmp.Or(looked[a.UID].Compare(looked[b.UID]), cmp.Compare(a.Name, b.Name))
	})
	return due[:max(0, free)], next
}

// unwatched names the object of an unwatched kind that the owner may have.
func (p *pass[O, S]) unwatched() ref {
	kind, name := p.owners.core.Unwatched(p.entry.owner, p.memory.status)
	return ref{kind, name}
}

// lookUnwatched reads the object of an unwatched kind that the owner may have, until one read succeeds. Until then the
// owner continues as if there were no such object; that is safe because a creation checks first.
func (p *pass[O, S]) lookUnwatched(ctx context.Context) {
	m, at := p.memory, p.unwatched()
	if at.name == "" || m.looked == at || p.now().Before(m.lookAgain) {
		return
	}
	action := plan.Action{Verb: plan.ConfirmNo, Kind: at.kind, Name: at.name, Owner: m.uid}
	p.turn.requests++
	r := (&executor[O, S]{owners: p.owners, owner: p.entry.owner}).do(ctx, action)
	p.owners.metrics.action(action.Does(), r.err)
	if r.err != nil {
		m.lookAgain = p.now().Add(pacing.LookInterval)
		p.tellFailures(ctx, []error{fmt.Errorf("%s: %w", action, r.err)}, ReasonActionFailed)
		return
	}
	r.outcome = nil // The core has not asked.
	m.looked = at
	m.remember(r)
	p.noteLook(r)
}
