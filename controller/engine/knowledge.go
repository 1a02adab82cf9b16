// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// departure is an object that an event has reported as deleted, or as back.
type departure struct {
	uid types.UID
	// certain means that the object is gone: a deletion was requested, or another object has the name. Otherwise the
	// object may only have lost the label by which the cache selects. unbound means that the object is a Pod without a
	// node.
	certain, unbound bool
	// last is a Pod in the last version that was seen, if the cluster ended the Pod. Earlier versions may not show how
	// it ended.
	last *corev1.Pod
	kind string
	// back says that the object has come into sight.
	back bool
}

// departures records which objects of an owner have left the caches since its last sync. Events may add objects at any
// time.
type departures struct {
	mu   sync.Mutex
	seen []departure
}

func (d *departures) add(departed departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, departed)
}

func (d *departures) take() []departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.seen
	d.seen = nil
	return seen
}

// known is what the controller knows of one owner between syncs.
type known[O Owner, S any] struct {
	memory *memory[O, S]
	// objects is what an earlier memory knew of the owner's objects. It is kept until the stored status is read again.
	// objectsOf is the owner's UID.
	objects   *objects
	objectsOf types.UID
	pace      *pacing.Pace[cause]
	// contents are those of the last writes that went through.
	contents   map[ref]content
	departures *departures
	// over means that the owner may be forgotten (plan.Plan.Over) as soon as the cache shows the written status.
	over bool
}

// knowledge is what the controller knows of all owners of a core.
type knowledge[O Owner, S any] struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]known[O, S]
	// decoding is held while a large status is decoded, so that large statuses are decoded one at a time. When a
	// controller starts, decoding all of them at once would take many times their memory.
	decoding sync.Mutex
}

// decodedAlone is a size in bytes, as in the cache. Stored statuses of at least this size are decoded one at a time.
const decodedAlone = 64 << 10

// of returns what the controller knows of an owner. If nothing is known yet, it starts with the status that the API
// server has. An owner that was deleted and created again with the same name counts as new.
func (k *knowledge[O, S]) of(key cache.ObjectName, entry *entry[O], core Core[O, S]) (known[O, S], error) {
	k.mu.Lock()
	before := k.byKey[key]
	k.mu.Unlock()
	if before.memory != nil && before.memory.uid == entry.owner.GetUID() {
		return before, nil
	}
	objects := newObjects()
	if before.objects != nil && before.objectsOf == entry.owner.GetUID() {
		objects = before.objects
	}
	memory, err := k.read(entry, core, objects) // Small ones don't wait while a large status is decoded.
	if err != nil {
		return known[O, S]{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[cache.ObjectName]known[O, S]{}
	}
	now := known[O, S]{memory: memory, pace: before.pace, contents: before.contents, departures: before.departures}
	if before.memory != nil || before.pace == nil { // It was created anew, or is seen for the first time.
		now.pace, now.contents, now.departures = &pacing.Pace[cause]{}, map[ref]content{}, &departures{}
	}
	k.byKey[key] = now
	return now, nil
}

// read makes a memory of the stored status.
func (k *knowledge[O, S]) read(entry *entry[O], core Core[O, S], objects *objects) (*memory[O, S], error) {
	if len(entry.storedStatus.data) >= decodedAlone {
		k.decoding.Lock()
		defer k.decoding.Unlock()
	}
	return newMemory(entry, core, objects)
}

// isOver reports whether the controller may forget an owner as soon as the cache shows its written status. setOver sets
// this.
func (k *knowledge[O, S]) isOver(key cache.ObjectName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byKey[key].over
}

// setOver is described at isOver.
func (k *knowledge[O, S]) setOver(key cache.ObjectName, over bool) {
	k.change(key, func(known *known[O, S]) { known.over = over })
}

// change changes what is known of an owner, if anything is.
func (k *knowledge[O, S]) change(key cache.ObjectName, how func(*known[O, S])) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.byKey[key]; ok {
		how(&known)
		k.byKey[key] = known
	}
}

// isNew reports whether nothing is known of an owner. After a call of rest for the owner, isNew returns false.
func (k *knowledge[O, S]) isNew(key cache.ObjectName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.byKey[key]
	return !known
}

// rest is described at isNew.
func (k *knowledge[O, S]) rest(key cache.ObjectName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[cache.ObjectName]known[O, S]{}
	}
	k.byKey[key] = known[O, S]{pace: &pacing.Pace[cause]{}, contents: map[ref]content{}, departures: &departures{}}
}

// letGo forgets everything about an owner except the time of the last sync, so that syncs do not become more frequent.
func (k *knowledge[O, S]) letGo(key cache.ObjectName) {
	k.change(key, func(known *known[O, S]) {
		known.memory, known.contents, known.over = nil, map[ref]content{}, false
		known.pace = &pacing.Pace[cause]{Syncs: known.pace.Syncs}
	})
}

// departed records that an object of an owner has left or returned to the cache. departed does nothing for an owner
// that is not known yet, because that owner's objects are read later.
func (k *knowledge[O, S]) departed(key cache.ObjectName, object departure) {
	k.change(key, func(known *known[O, S]) { known.departures.add(object) })
}

// reread forgets an owner except for its pace and its last writes, by which repeated writes are recognized. The next
// sync reads the stored status again. reread returns the pace; nil if the owner was not known.
func (k *knowledge[O, S]) reread(key cache.ObjectName) (pace *pacing.Pace[cause]) {
	k.change(key, func(known *known[O, S]) { known.memory, known.objects, pace = nil, nil, known.pace })
	return pace
}

// rereadStatus makes the next sync read an owner's status again, if the owner's status, spec or metadata differ from
// those that the memory was made from. It keeps what is known of the owner's objects, because the caches may not show
// recent writes and deletions yet.
func (k *knowledge[O, S]) rereadStatus(key cache.ObjectName) {
	k.change(key, func(known *known[O, S]) {
		if known.memory != nil {
			known.objects, known.objectsOf, known.memory = known.memory.objects, known.memory.uid, nil
		}
	})
}

// leave forgets an owner that can't be read or decoded, except for the back-off. Events of its objects are ignored
// until it can be read again; live reads find out then what has happened.
func (k *knowledge[O, S]) leave(key cache.ObjectName) {
	k.reread(key)
	k.change(key, func(known *known[O, S]) { known.departures.take() })
}

// all returns what is known, by owner.
func (k *knowledge[O, S]) all() map[cache.ObjectName]known[O, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.byKey)
}

func (k *knowledge[O, S]) forget(key cache.ObjectName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}
