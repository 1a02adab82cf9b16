// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// View holds what the engine knows of an owner; a core builds a snapshot from it. All fields are read only. Named,
// Owned, Overlay and Found look up objects.
type View[O Owner, S any] struct {
	// Owner has metadata and spec.
	Owner O
	// DeletionTimestamp is when the deletion of the owner was requested; nil if it was not. It may be newer than Owner.
	DeletionTimestamp *metav1.Time
	plan.Known[S]

	pass *pass[O, S]
	// shown are the sets of objects that the decision sees.
	shown []objectSet
}

// objectSet is a set of objects that a decision sees.
type objectSet struct {
	count int
	each  func(yield func(metav1.Object))
}

// Named returns the object with a name; the zero value if there is none. While the cache is older, Named returns the
// object that a live read has found or a write has returned. The core has to check whether the object belongs to the
// owner.
func Named[T metav1.Object, O Owner, S any](view *View[O, S], kind, name string) (object T, err error) {
	p, known := view.pass, false
	p.memory.each(kind, func(newer metav1.Object) {
		if own, ok := newer.(T); ok && own.GetName() == name {
			object, known = own, true
		}
	})
	if known {
		return object, nil
	}
	informer, err := p.informer(kind)
	if err != nil {
		return object, err
	}
	cached, exists, err := informer.GetIndexer().GetByKey(cache.NewObjectName(p.key.Namespace, name).String())
	if err != nil || !exists {
		return object, err
	}
	object, ok := cached.(T)
	if !ok {
		return object, fmt.Errorf("the cache of the kind %s holds a %T", kind, cached)
	}
	return object, nil
}

// Found returns the objects of a kind that a live read has found and the cache does not show.
func Found[T metav1.Object, O Owner, S any](view *View[O, S], kind string) []T {
	var found []T
	for _, stray := range view.pass.memory.strays {
		if own, ok := stray.object.(T); ok && stray.kind == kind {
			found = append(found, own)
		}
	}
	return found
}

// Owned returns the owner's objects of a kind, by name. They are the cached objects that the index ByOwner has under
// one of the UIDs, brought up to date by Overlay.
func Owned[T metav1.Object, O Owner, S any](view *View[O, S], kind string, uids ...types.UID) (map[string]T, error) {
	p := view.pass
	informer, err := p.informer(kind)
	if err != nil {
		return nil, err
	}
	objects := map[string]T{}
	for i, uid := range uids {
		if uid == "" || slices.Contains(uids[:i], uid) {
			continue
		}
		cached, err := informer.GetIndexer().ByIndex(ByOwner, OwnerKey(p.key.Namespace, uid))
		if err != nil {
			return nil, err
		}
		for _, object := range cached {
			if own, ok := object.(T); ok {
				objects[own.GetName()] = own
			}
		}
	}
	Overlay(view, kind, objects)
	return objects, nil
}

// Overlay brings a map of objects from the cache up to date. Overlay adds objects from lists, recent writes and live
// reads, as long as the cache is older. A Pod that the cluster ended is shown once more after it is gone. Overlay also
// sets View.Terminating: the time at which each deletion was first seen. Call Overlay once for a kind, and do not
// change the map afterwards.
func Overlay[T metav1.Object, O Owner, S any](view *View[O, S], kind string, objects map[string]T) {
	p := view.pass
	p.memory.each(kind, func(newer metav1.Object) {
		if own, ok := newer.(T); ok {
			objects[own.GetName()] = own
		}
	})
	for _, parting := range p.memory.parting {
		if own, ok := metav1.Object(parting.last).(T); ok && parting.kind == kind {
			if _, succeeded := objects[own.GetName()]; !succeeded {
				objects[own.GetName()] = own
			}
		}
	}
	for _, object := range objects {
		if object.GetDeletionTimestamp() != nil {
			p.pace.Terminating.First(object.GetUID(), p.now())
		}
	}
	view.Terminating = p.pace.Terminating.At()
	view.shown = append(view.shown, objectSet{count: len(objects), each: func(yield func(metav1.Object)) {
		for _, object := range objects {
			yield(object)
		}
	}})
}

// gather puts together what is known of an owner.
func (p *pass[O, S]) gather() (*View[O, S], error) {
	m, owner := p.memory, p.entry.owner
	m.bury(p.departures.take())
	view := &View[O, S]{
		Owner:             owner,
		DeletionTimestamp: owner.GetDeletionTimestamp(),
		Known: plan.Known[S]{
			Version:   p.version(),
			Persisted: m.persisted,
			Status:    m.status,
			Current:   m.current,
			Kept:      m.kept,
			Checked:   m.seen,
			Gone:      m.gone,
			Deleted:   m.deleted,
			Forced:    m.forced,
			Blocked:   m.blocked(),
			Outcomes:  m.outcomes,
		},
		pass: p,
	}
	if view.DeletionTimestamp == nil {
		view.DeletionTimestamp = m.deletionTimestamp // The cache may be behind.
	}
	return view, p.forgetShown()
}

// informer caches the objects of a kind.
func (p *pass[O, S]) informer(kind string) (cache.SharedIndexInformer, error) {
	if known := p.owners.kinds[kind]; known != nil {
		return known.Informer, nil
	}
	return nil, fmt.Errorf("there is no cache of the kind %s", kind)
}

// forgetShown forgets those objects from live reads, lists and writes that the caches now show in the same or a newer
// version.
func (p *pass[O, S]) forgetShown() error {
	m := p.memory
	for uid, listed := range m.listed {
		cached, err := p.cachedOf(listed)
		if err != nil {
			return err
		}
		if m.gone[uid] || cached != nil && atLeast(cached.GetResourceVersion(), listed.object.GetResourceVersion()) {
			delete(m.listed, uid)
		}
	}
	for uid, stray := range m.strays {
		cached, err := p.cachedOf(stray)
		if err != nil {
			return err
		}
		if cached != nil && (cached.GetUID() == uid || !newer(stray.object, cached)) {
			delete(m.strays, uid)
		}
	}
	for at, ours := range m.ahead {
		informer, err := p.informer(at.kind)
		if err != nil {
			return err
		}
		store := informer.GetIndexer()
		// The version is read first: later reads are at least as new.
		seen := store.LastStoreSyncResourceVersion()
		if shown := p.owners.shown[at.kind]; shown != nil {
			seen = shown.in(p.key.Namespace)
		}
		object, exists, err := store.GetByKey(cache.MetaObjectToName(ours).String())
		if err != nil {
			return err
		}
		version := ours.GetResourceVersion()
		if atLeast(seen, version) || exists && resourceVersion(object) == version {
			delete(m.ahead, at)
		}
	}
	return nil
}

// cachedOf returns the cached object with the same name as an object that was found; nil if there is none.
func (p *pass[O, S]) cachedOf(shown stray) (metav1.Object, error) {
	informer, err := p.informer(shown.kind)
	if err != nil {
		return nil, err
	}
	object, exists, err := informer.GetIndexer().GetByKey(cache.MetaObjectToName(shown.object).String())
	if err != nil || !exists {
		return nil, err
	}
	return objectMeta(object), nil
}

// newer reports whether one object was written after another.
func newer(object, than metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), than.GetResourceVersion())
	return err == nil && order > 0
}

// atLeast reports whether a resource version is at least as new as another. atLeast returns false if the versions can't
// be compared.
func atLeast(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}

// forgetSightings forgets when objects were seen that are not there any more.
func (p *pass[O, S]) forgetSightings(view *View[O, S]) {
	p.pace.Looks.Keep(func(uid types.UID) bool {
		_, unseen := p.memory.lookedAt(uid)
		return unseen
	})
	if len(p.pace.Terminating.At()) <= view.count()+pruneSlack {
		return
	}
	there := make(map[types.UID]bool, view.count())
	view.each(func(object metav1.Object) { there[object.GetUID()] = true })
	p.pace.Terminating.Keep(func(uid types.UID) bool { return there[uid] })
}

// count and each are of the objects that the decision sees.
func (v *View[O, S]) count() int {
	count := 0
	for _, set := range v.shown {
		count += set.count
	}
	return count
}

func (v *View[O, S]) each(yield func(metav1.Object)) {
	for _, set := range v.shown {
		set.each(yield)
	}
}
