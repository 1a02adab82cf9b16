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

// objects is what the controller knows of one owner's objects. It does not depend on the owner's status. It becomes
// invalid when etcd is restored from a backup.
type objects struct {
	// deleted, forced and gone are the View's.
	deleted, forced, gone map[types.UID]bool
	// strays are objects of the owner that a live read has found. Each stays here until the caches show it, or it is
	// gone.
	strays map[types.UID]stray
	// ahead are written objects of remembered kinds, until the caches are as new.
	ahead map[ref]metav1.Object
	// listed are objects that a list has shown. Each stays here until the caches show that version or the object is
	// gone. An object that the list lacked, or had in an older version, is not here: the cache may have newer events of
	// it.
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

// each visits the objects of a kind that replace what the caches show: first objects from a list, then objects that
// were just written, then objects that a live read has found. If several have the same name, the last one counts.
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

// memory is what the controller remembers of one owner between syncs. Only the owner's one sync, or the flush at the
// end, uses it. If it is lost, the controller is slower, but still correct.
type memory[O Owner, S any] struct {
	*objects
	uid types.UID
	// resourceVersion is the owner's version after this controller's last write or live read. checked is the newest
	// cached version whose status was found to be this controller's. refused is a version at which a write got a
	// conflict although a live read showed that very version; so the conflict was a refusal, and not a race.
	resourceVersion, checked, refused string
	// persisted is the status that the API server has. status also contains changes that are not written yet.
	persisted, status *S
	// stored is the status `persisted` in the form in which it was written, which may be shortened. sent are statuses
	// that the API server may have stored although their writes returned an error.
	stored *S
	sent   []*S
	// decider is the core's.
	decider Decider[O, S]
	// outcomes, current and kept are parts of the View, and seen is Checked there.
	outcomes []plan.Outcome
	seen     map[types.UID]bool
	current  bool
	kept     plan.Kept
	// looked is the object of an unwatched kind that was read. lookAgain is when the read is tried again after a
	// failure.
	looked    ref
	lookAgain time.Time
	// parting are Pods that the cluster has ended and that are gone, in the last version that was seen. The next
	// decision sees them once more.
	parting []departure
	// blocks are the creations and updates that are refused for now. failed are the objects of groups that could not be
	// created. When one of them fails again, all of its group have been tried, and the record begins anew.
	blocks map[cause]plan.Block
	failed map[ref]bool
	// left are the actions of the last plan that have not been started yet. decidedOn is the owner for which they were
	// planned.
	left      []plan.Action
	decidedOn metav1.Object
	// events wait until the status with their content is written.
	events []plan.Event
	// telling bounds how many events are recorded.
	telling telling
	// templates are the templates that were looked at last.
	templates checkedTemplates
	// deletionTimestamp is when the deletion of the owner was requested, if an answer of the API server has shown that.
	deletionTimestamp *metav1.Time
	// complaint is the last report, so that each is reported once.
	complaint string
}

// maxEvents limits how many events wait for the status to be written. A write may fail for days.
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

// newMemory returns the memory for an owner with a stored status. objects is what is known of the owner's objects.
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

// forgettable reports whether the memory of an owner can be dropped, because it could be made again from the stored
// status: the status is written, the cache shows it, and the owner has no objects left.
func (m *memory[O, S]) forgettable(entry *entry[O]) bool {
	return m.status == m.persisted && m.stored == m.persisted && len(m.sent) == 0 &&
		atLeast(entry.owner.GetResourceVersion(), m.resourceVersion) &&
		entry.owner.GetDeletionTimestamp() == nil && m.deletionTimestamp == nil && !m.deleted[m.uid] &&
		len(m.outcomes) == 0 && len(m.events) == 0 && len(m.left) == 0 && len(m.blocks) == 0 && len(m.failed) == 0 &&
		len(m.strays) == 0 && len(m.ahead) == 0 && len(m.listed) == 0 && len(m.parting) == 0
}

// carriesOn reports whether actions of the last plan are left, and no change by the user has made them obsolete.
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

// lookedAt returns an object that a live read has found and that the caches may not show.
func (m *memory[O, S]) lookedAt(uid types.UID) (stray, bool) {
	if known, ok := m.strays[uid]; ok {
		return known, true
	}
	known, ok := m.listed[uid]
	return known, ok
}

// noteSeen records which objects were known when the API server confirmed the status.
func (m *memory[O, S]) noteSeen(uids []types.UID) {
	for _, uid := range uids {
		m.seen[uid] = true
	}
}

// bury records as gone the objects for which a delete event was seen. If such an object appears again, because the
// cache was behind, the record is removed; a wrong removal costs one request. A Pod that the cluster ended is shown to
// one more decision.
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

// prune drops records that are no longer needed, once there are many of them: of objects that were deleted, or read for
// a check, and are no longer in the view; of ended objects that the status does not name; and of writes so long ago
// that nobody is expected to undo them.
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
