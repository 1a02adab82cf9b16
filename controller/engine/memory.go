// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// objects records what the controller knows about the objects of one owner. The record does not depend on the owner's
// status, and holds until etcd is restored.
type objects struct {
	// deleted, forced and gone are the View's.
	deleted, forced, gone map[types.UID]bool
	// strays are the owner's objects that a live look has found, until the caches show them or they are gone.
	strays map[types.UID]stray
	// ahead are written objects of remembered kinds, until the caches are as new.
	ahead map[ref]metav1.Object
	// listed are objects as a list has shown them, until the caches show that version or they are gone: of others the
	// caches may have heard later news, and have lost those of these.
	listed map[types.UID]stray
}

func newObjects() *objects {
	return &objects{
		deleted: map[types.UID]bool{},
		forced:  map[types.UID]bool{},
		gone:    map[types.UID]bool{},
		strays:  map[types.UID]stray{},
		ahead:   map[ref]metav1.Object{},
		listed:  map[types.UID]stray{},
	}
}

// each visits the objects of a kind that override the caches: first objects that a list has shown, then objects that
// were written lately, then objects that a live look has found. If several have the same name, the last visited object
// counts.
func (o *objects) each(kind string, visit func(metav1.Object)) {
	for _, listed := range o.listed {
		if listed.kind == kind {
			visit(listed.object)
		}
	}
	for at, object := range o.ahead {
		if at.kind == kind {
			visit(object)
		}
	}
	for _, stray := range o.strays {
		if stray.kind == kind {
			visit(stray.object)
		}
	}
}

// memory holds what the controller remembers of one owner between syncs. Only the owner's one sync, or the flush, uses
// it. The controller stays correct if all of it is lost.
type memory[O Owner, S any] struct {
	*objects
	uid types.UID
	// resourceVersion is the owner's after our last write or live check. checked is the newest cached version with a
	// status that was found to be ours. refused is a version at which a write got 409 although a live GET showed that
	// version: a refusal, not a race.
	resourceVersion, checked, refused string
	// persisted is the status that the API server has, status is that and what
	// is not yet written.
	persisted, status *S
	// stored is what was written of persisted: that, or a shortened one. sent are statuses with writes that have failed
	// since, although the API server may have stored them.
	stored *S
	sent   []*S
	// decider is the core's.
	decider Decider[O, S]
	// outcomes, current and kept are parts of the View, and seen is Checked there.
	outcomes []plan.Outcome
	seen     map[types.UID]bool
	current  bool
	kept     plan.Kept
	// looked is the object of an unwatched kind that was looked for, and lookAgain when that is tried again after a failure.
	looked    ref
	lookAgain time.Time
	// parting are Pods that are gone, in the last version, for the next decision: the cluster ended these.
	parting []departure
	// blocks are the creations that are refused for now, and failed the objects of a group after a failed creation.
	blocks map[cause]plan.Block
	failed map[ref]bool
	// left are the actions of the last plan that were not started yet. decidedOn is the owner at the time of that plan.
	left      []plan.Action
	decidedOn metav1.Object
	// events wait until the status with their content is written.
	events []plan.Event
	// telling bounds how many events are recorded.
	telling telling
	// templates are the templates that were looked at last.
	templates checkedTemplates
	// deletionTimestamp is when the deletion of the owner began, if an answer of the API server has shown that.
	deletionTimestamp *metav1.Time
	// complaint is the last report, so that each is reported once.
	complaint string
}

// maxEvents bounds how many events wait until the status is written: a write may fail for days.
const maxEvents = 1000

// newest returns the last elements of a list, no more than `most`.
func newest[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

// ref names an object of an owner.
type ref struct{ kind, name string }

// refOf names the object of an action.
func refOf(action plan.Action) ref { return ref{action.Kind, action.Name} }

// content holds the fields that a write has set in an object, with the object's UID and the time.
type content struct {
	says string
	of   types.UID
	at   time.Time
}

// stray is an object that was found by a live look.
type stray struct {
	kind   string
	object metav1.Object
}

// newMemory knows the stored status of an owner, and the known facts about the objects.
func newMemory[O Owner, S any](entry *entry[O], core Core[O, S], objects *objects) (*memory[O, S], error) {
	memory := &memory[O, S]{
		objects:         objects,
		uid:             entry.owner.GetUID(),
		resourceVersion: entry.owner.GetResourceVersion(),
		decider:         core.NewDecider(),
		seen:            map[types.UID]bool{},
		blocks:          map[cause]plan.Block{},
		failed:          map[ref]bool{},
		telling:         telling{},
	}
	status, err := decodeStored(entry.storedStatus, core)
	if err != nil {
		return nil, fmt.Errorf("reading the stored status: %w", err)
	}
	memory.persisted, memory.status, memory.stored = status, status, status
	return memory, nil
}

// forgettable reports whether the memory of an owner can be dropped: the status is written, the cache shows that
// status, and no object of the owner is left. Everything in the memory can then be read again from the stored status.
func (m *memory[O, S]) forgettable(entry *entry[O]) bool {
	return m.status == m.persisted && m.stored == m.persisted && len(m.sent) == 0 &&
		atLeast(entry.owner.GetResourceVersion(), m.resourceVersion) &&
		entry.owner.GetDeletionTimestamp() == nil && m.deletionTimestamp == nil && !m.deleted[m.uid] &&
		len(m.outcomes) == 0 && len(m.events) == 0 && len(m.left) == 0 && len(m.blocks) == 0 && len(m.failed) == 0 &&
		len(m.strays) == 0 && len(m.ahead) == 0 && len(m.listed) == 0 && len(m.parting) == 0
}

// carriesOn reports whether a part of the last plan is left that no change by the user has made obsolete.
func (m *memory[O, S]) carriesOn(owner O) bool {
	return len(m.left) > 0 && asksTheSame(m.decidedOn, owner) && owner.GetDeletionTimestamp() == nil
}

// remember keeps what the next rounds have to know before the caches do.
func (m *memory[O, S]) remember(r result) {
	if r.outcome != nil {
		m.outcomes = append(m.outcomes, *r.outcome)
	}
	switch r.action.Verb {
	case plan.Delete:
		if r.remembered == nil { // Else it has changed, and is there.
			m.deleted[r.action.UID] = true
		}
	case plan.ForceDelete:
		m.forced[r.action.UID] = true
		delete(m.listed, r.action.UID)
	}
	if r.gone != "" {
		m.gone[r.gone] = true
		delete(m.strays, r.gone)
		delete(m.listed, r.gone)
	}
	switch {
	case r.remembered != nil:
		m.ahead[refOf(r.action)] = r.remembered
		for _, looked := range []map[types.UID]stray{m.strays, m.listed} {
			if known, ok := looked[r.remembered.GetUID()]; ok {
				known.object = r.remembered
				looked[r.remembered.GetUID()] = known
			}
		}
	case r.found != nil:
		m.strays[r.found.GetUID()] = stray{kind: r.action.Kind, object: r.found}
		delete(m.listed, r.found.GetUID())
	}
}

// lookedAt returns an object that was found by a live look, and that the caches may not show.
func (m *memory[O, S]) lookedAt(uid types.UID) (stray, bool) {
	if known, ok := m.strays[uid]; ok {
		return known, true
	}
	known, ok := m.listed[uid]
	return known, ok
}

// noteSeen records the objects that were known at the moment when the API server confirmed the status.
func (m *memory[O, S]) noteSeen(uids []types.UID) {
	for _, uid := range uids {
		m.seen[uid] = true
	}
}

// bury records UIDs for which a delete event was seen. If an object with the UID shows up again, because the cache was
// behind, the record is removed; a wrong removal costs one request that finds nothing. A Pod that the cluster ended is
// first shown to one decision.
func (m *memory[O, S]) bury(departed []departure) {
	shown := m.parting
	m.parting = nil
	for i, object := range slices.Concat(shown, departed) {
		if object.back {
			m.parting = slices.DeleteFunc(m.parting, func(parting departure) bool { return parting.uid == object.uid })
			if m.gone[object.uid] {
				delete(m.gone, object.uid)
				delete(m.deleted, object.uid)
				delete(m.forced, object.uid)
			}
			continue
		}
		if object.last != nil && i >= len(shown) && !m.gone[object.uid] {
			m.parting = append(m.parting, object)
			continue
		}
		// A deleted Pod without a node goes at once, without a deletion timestamp.
		if object.certain || m.deleted[object.uid] && object.unbound {
			m.gone[object.uid] = true
			delete(m.strays, object.uid)
			delete(m.listed, object.uid)
		}
	}
}

// pruneSlack is the number of superfluous entries at which a map is pruned.
const pruneSlack = 64

// prune removes entries that are no longer needed: deletions of objects that a decision has not seen, records that a
// decision has seen an object, ends of objects that the status does not name any more, and writes that have lasted.
func (p *pass[O, S]) prune(view *View[O, S]) {
	m, count := p.memory, view.count()
	shown := func(uids map[types.UID]bool) map[types.UID]bool {
		kept := map[types.UID]bool{}
		view.each(func(object metav1.Object) {
			if uids[object.GetUID()] {
				kept[object.GetUID()] = true
			}
		})
		return kept
	}
	if len(m.deleted)+len(m.forced) > 2*count+pruneSlack {
		m.deleted, m.forced = shown(m.deleted), shown(m.forced)
	}
	if len(m.seen) > 2*count+pruneSlack {
		m.seen = shown(m.seen)
	}
	p.pace.Repeats.Forget(p.now())
	if len(p.contents) > 2*count+pruneSlack {
		lasting := p.pace.Repeats.Lasting()
		maps.DeleteFunc(p.contents, func(_ ref, last content) bool { return p.now().Sub(last.at) >= lasting })
	}
	if len(m.gone) <= 2*p.size()+pruneSlack {
		return
	}
	gone := map[types.UID]bool{}
	for uid := range p.owners.core.UIDs(m.status) {
		if m.gone[uid] {
			gone[uid] = true
		}
	}
	m.gone = gone
}
