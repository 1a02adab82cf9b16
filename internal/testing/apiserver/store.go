// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// table has the objects of a resource and all that has happened to them.
type table struct {
	*resource
	objects map[types.NamespacedName]*revision
	// log is what has happened, in order of the versions.
	log []event
	// forgotten is up to which version the log can't be watched any more.
	forgotten uint64
	watches   map[*watcher]struct{}
	// dropped are the fields of a status that are not stored, by path.
	dropped [][]string
}

// event is a write of one object, or a bookmark.
type event struct {
	version uint64
	at      time.Time
	// before is nil if the event is a creation, after if it is a deletion. Both are nil for a bookmark.
	before, after *revision
	// last is before with the resource version of the event. A watch gets it as the deleted object if its selector
	// matches before and not after.
	last *revision
}

func (e *event) bookmark() bool { return e.before == nil && e.after == nil }

// forWatch returns the event for a watch that sees some objects only.
func (e *event) forWatch(sees func(*revision) bool) (watch.EventType, *revision) {
	before := e.before != nil && sees(e.before)
	after := e.after != nil && sees(e.after)
	switch {
	case before && after:
		return watch.Modified, e.after
	case after:
		return watch.Added, e.after
	case before:
		if e.last == nil {
			e.last = e.before.at(e.version)
		}
		return watch.Deleted, e.last
	}
	return "", nil
}

// since returns where the events begin that are younger than a version.
func (t *table) since(version uint64) int {
	i, _ := slices.BinarySearchFunc(t.log, version+1, func(e event, v uint64) int { return cmp.Compare(e.version, v) })
	return i
}

// state returns the objects as they were before the event with an index in the log, sorted by name.
func (t *table) state(index int) []*revision {
	changed := map[types.NamespacedName]*revision{}
	for i := len(t.log) - 1; i >= index; i-- {
		if e := &t.log[i]; !e.bookmark() {
			changed[keyOf(cmp.Or(e.before, e.after))] = e.before
		}
	}
	found := make([]*revision, 0, len(t.objects))
	for key, current := range t.objects {
		if _, ok := changed[key]; !ok {
			found = append(found, current)
		}
	}
	for _, old := range changed {
		if old != nil {
			found = append(found, old)
		}
	}
	slices.SortFunc(found, func(a, b *revision) int {
		return cmp.Or(cmp.Compare(a.meta.Namespace, b.meta.Namespace), cmp.Compare(a.meta.Name, b.meta.Name))
	})
	return found
}

func keyOf(r *revision) types.NamespacedName {
	return types.NamespacedName{Namespace: r.meta.Namespace, Name: r.meta.Name}
}

// put stores an object that is new or changed.
func (s *Server) put(t *table, object runtime.Object) *revision {
	s.version++
	metaOf(object).ResourceVersion = formatVersion(s.version)
	r := newRevision(object)
	key := keyOf(r)
	before := t.objects[key]
	t.objects[key] = r
	s.byUID[r.meta.UID] = stored{t, key}
	s.append(t, event{version: s.version, before: before, after: r})
	s.observe(t, before, r)
	s.garbage.consider(s, before, r)
	return r
}

// remove removes an object for good.
func (s *Server) remove(t *table, r *revision) {
	s.version++
	delete(t.objects, keyOf(r))
	delete(s.byUID, r.meta.UID)
	s.append(t, event{version: s.version, before: r})
	s.observe(t, r, nil)
	s.garbage.consider(s, r, nil)
}

func (s *Server) append(t *table, e event) {
	e.at = time.Now()
	t.log = append(t.log, e)
	for w := range t.watches {
		w.notify()
	}
}
