// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// garbage is what the garbage collector has to do and when.
type garbage struct {
	// owned has the objects with owners, by their UID.
	owned map[types.UID]stored
	// dirty says that there may be something to collect.
	dirty bool
	// delay is how long after a write the garbage collector runs, if StartGarbageCollector was called.
	delay   time.Duration
	runs    bool
	waiting bool
}

// CollectGarbage does all pending work of Kubernetes' garbage collector at once. It deletes the dependents of objects
// that are gone, or that wait for their dependents' deletion, and it removes the finalizers of owners without
// dependents.
func (s *Server) CollectGarbage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collect()
}

// StartGarbageCollector makes the garbage collector run automatically, some time after each write that concerns it.
func (s *Server) StartGarbageCollector(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage.runs, s.garbage.delay = true, delay
	s.garbage.schedule(s)
}

// consider notes a write.
func (g *garbage) consider(s *Server, before, after *revision) {
	if before != nil {
		delete(g.owned, before.meta.UID)
	}
	if after != nil && len(after.meta.OwnerReferences) > 0 {
		if g.owned == nil {
			g.owned = map[types.UID]stored{}
		}
		g.owned[after.meta.UID] = s.byUID[after.meta.UID]
	}
	switch {
	case after == nil,
		after.meta.DeletionTimestamp != nil && len(after.meta.Finalizers) > 0,
		before == nil && len(after.meta.OwnerReferences) > 0,
		before != nil && len(before.meta.OwnerReferences) != len(after.meta.OwnerReferences):
		g.dirty = true
		g.schedule(s)
	}
}

func (g *garbage) schedule(s *Server) {
	if !g.runs || !g.dirty || g.waiting {
		return
	}
	g.waiting = true
	time.AfterFunc(g.delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.collect()
	})
}

// collect goes on until there is nothing left to do.
func (s *Server) collect() {
	s.garbage.waiting = true // What it does itself needs no other run.
	defer func() { s.garbage.waiting = false }()
	for s.garbage.dirty {
		s.garbage.dirty = false
		for _, dependent := range s.sorted(s.garbage.owned) {
			s.attemptToDelete(dependent)
		}
		var owners []stored
		for _, t := range s.tables {
			for key, r := range t.objects {
				if r.meta.DeletionTimestamp != nil && len(r.meta.Finalizers) > 0 {
					owners = append(owners, stored{t, key})
				}
			}
		}
		for _, owner := range sortStored(owners) {
			s.letGo(owner)
		}
	}
}

func (s *Server) sorted(objects map[types.UID]stored) []stored {
	found := make([]stored, 0, len(objects))
	for _, object := range objects {
		found = append(found, object)
	}
	return sortStored(found)
}

func sortStored(objects []stored) []stored {
	slices.SortFunc(objects, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.table.Resource.Resource, b.table.Resource.Resource),
			cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	return objects
}

// attemptToDelete deletes an object that no owner keeps.
func (s *Server) attemptToDelete(object stored) {
	current := object.table.objects[object.key]
	if current == nil || current.meta.DeletionTimestamp != nil {
		return
	}
	solid, waiting := 0, 0
	for _, reference := range current.meta.OwnerReferences {
		switch owner := s.owner(current.meta.Namespace, reference); {
		case owner == nil:
		case waitsForDependents(owner.meta):
			waiting++
		default:
			solid++
		}
	}
	if solid == len(current.meta.OwnerReferences) {
		return
	}
	if solid > 0 {
		changed := current.change()
		metadata := metaOf(changed)
		metadata.OwnerReferences = slices.DeleteFunc(metadata.OwnerReferences, func(reference metav1.OwnerReference) bool {
			owner := s.owner(current.meta.Namespace, reference)
			return owner == nil || waitsForDependents(owner.meta)
		})
		s.put(object.table, changed)
		return
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case waiting > 0 && s.hasDependents(current.meta.UID), slices.Contains(current.meta.Finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	case slices.Contains(current.meta.Finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	}
	_, err := s.deleteObject(object.table, current, &metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(current.meta.UID)), PropagationPolicy: &policy})
	if err != nil {
		s.t.Errorf("collecting garbage: %v", err)
	}
}

// letGo removes the garbage collector's finalizer from a deleted object once no dependent is left, or if its dependents
// are to be orphaned.
func (s *Server) letGo(object stored) {
	current := object.table.objects[object.key]
	if current == nil {
		return
	}
	uid := current.meta.UID
	switch {
	case slices.Contains(current.meta.Finalizers, metav1.FinalizerOrphanDependents):
		for _, dependent := range s.sorted(s.garbage.owned) {
			s.disown(dependent, uid)
		}
		s.dropFinalizer(object, metav1.FinalizerOrphanDependents)
	case waitsForDependents(current.meta) && !s.blocked(uid):
		s.dropFinalizer(object, metav1.FinalizerDeleteDependents)
	}
}

func (s *Server) disown(dependent stored, owner types.UID) {
	current := dependent.table.objects[dependent.key]
	isOwner := func(reference metav1.OwnerReference) bool { return reference.UID == owner }
	if current == nil || !slices.ContainsFunc(current.meta.OwnerReferences, isOwner) {
		return
	}
	changed := current.change()
	metaOf(changed).OwnerReferences = slices.DeleteFunc(metaOf(changed).OwnerReferences, isOwner)
	s.put(dependent.table, changed)
}

func (s *Server) dropFinalizer(object stored, finalizer string) {
	current := object.table.objects[object.key]
	changed := current.change()
	metaOf(changed).Finalizers = slices.DeleteFunc(metaOf(changed).Finalizers, func(f string) bool { return f == finalizer })
	if _, err := s.store(object.table, current, changed); err != nil {
		s.t.Errorf("collecting garbage: %v", err)
	}
}

// owner returns the object that an owner reference means; nil if it is gone, even if another object has its name.
func (s *Server) owner(namespace string, reference metav1.OwnerReference) *revision {
	found, ok := s.byUID[reference.UID]
	if !ok || found.table.Kind != reference.Kind || found.key.Name != reference.Name ||
		!found.table.Cluster && found.key.Namespace != namespace {
		return nil
	}
	return found.table.objects[found.key]
}

func (s *Server) hasDependents(owner types.UID) bool {
	return s.anyDependent(owner, func(metav1.OwnerReference) bool { return true })
}

// blocked reports whether an object has a dependent that its deletion waits for.
func (s *Server) blocked(owner types.UID) bool {
	return s.anyDependent(owner, func(reference metav1.OwnerReference) bool { return ptr.Deref(reference.BlockOwnerDeletion, false) })
}

func (s *Server) anyDependent(owner types.UID, which func(metav1.OwnerReference) bool) bool {
	for _, dependent := range s.garbage.owned {
		for _, reference := range dependent.table.objects[dependent.key].meta.OwnerReferences {
			if reference.UID == owner && which(reference) {
				return true
			}
		}
	}
	return false
}

// waitsForDependents reports whether an object is deleted in the foreground.
func waitsForDependents(metadata *metav1.ObjectMeta) bool {
	return metadata.DeletionTimestamp != nil && slices.Contains(metadata.Finalizers, metav1.FinalizerDeleteDependents)
}
