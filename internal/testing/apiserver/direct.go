// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// The functions of this file are what a test does and sees by itself: no hook, no journal and no latency has a part
// in it, and rules for clients don't hold. Watches see these changes.

// Object is a pointer to a type of objects.
type Object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// Find returns an object as stored, nil if none. It must not be changed.
func Find[T any, P Object[T]](s *Server, namespace, name string) P {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tableOf(P(nil)).objects[types.NamespacedName{Namespace: namespace, Name: name}]
	if r == nil {
		return nil
	}
	return typed[T, P](s, r)
}

// All returns the objects of a namespace, or of all namespaces if it is empty, sorted by name. Callers must not change
// them.
func All[T any, P Object[T]](s *Server, namespace string) []P {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(P(nil))
	objects := make([]P, 0, len(t.objects))
	for _, r := range t.objects {
		if namespace == "" || r.meta.Namespace == namespace {
			objects = append(objects, typed[T, P](s, r))
		}
	}
	slices.SortFunc(objects, func(a, b P) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects
}

// Add stores a new object as it is, including its status, and returns it. If the object lacks a UID or a time of
// creation, it gets one.
func Add[T any, P Object[T]](s *Server, object P) P {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(object)
	added := s.stored(t, object)
	metadata := metaOf(added)
	if t.objects[types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name}] != nil {
		s.t.Fatalf("there is a %s %s/%s already", t.Kind, metadata.Namespace, metadata.Name)
	}
	if metadata.UID == "" {
		metadata.UID = s.newUID()
	}
	if metadata.CreationTimestamp.IsZero() {
		metadata.CreationTimestamp = s.time()
	}
	if t.generation && metadata.Generation == 0 {
		metadata.Generation = 1
	}
	return typed[T, P](s, s.put(t, added))
}

// Change changes an object and returns the result. If the object is being deleted and loses its last finalizer, it is
// removed. The test fails if the object does not exist.
func Change[T any, P Object[T]](s *Server, namespace, name string, change func(P)) P {
	s.t.Helper()
	changed := ChangeAny(s, namespace, name, change)
	if changed == nil {
		s.t.Fatalf("there is no %T %s/%s to change", changed, namespace, name)
	}
	return changed
}

// ChangeAny changes an object as Change does, but returns nil if the object does not exist, since another client may
// have removed it.
func ChangeAny[T any, P Object[T]](s *Server, namespace, name string, change func(P)) P {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(P(nil))
	current := t.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	if current == nil {
		return nil
	}
	changed := typed[T, P](s, newRevision(current.change()))
	change(changed)
	r, err := s.store(t, current, s.stored(t, changed))
	if err != nil {
		s.t.Fatalf("changing %s %s/%s: %v", t.Kind, namespace, name, err)
	}
	return typed[T, P](s, r)
}

// Remove removes an object at once, ignoring finalizers. Remove does nothing if the object does not exist.
func Remove[T any, P Object[T]](s *Server, namespace, name string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(P(nil))
	if current := t.objects[types.NamespacedName{Namespace: namespace, Name: name}]; current != nil {
		s.remove(t, current)
	}
}

// DeleteObject deletes an object as a client would, with options. DeleteObject does nothing if the object does not
// exist.
func DeleteObject[T any, P Object[T]](s *Server, namespace, name string, options metav1.DeleteOptions) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(P(nil))
	current := t.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	if current == nil {
		return
	}
	if _, err := s.deleteObject(t, current, &options); err != nil {
		s.t.Fatalf("deleting %s %s/%s: %v", t.Kind, namespace, name, err)
	}
}

// JSON returns an object as sent to clients, nil if none.
func (s *Server) JSON(resource, namespace, name string) []byte {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.table(resource).objects[types.NamespacedName{Namespace: namespace, Name: name}]
	if r == nil {
		return nil
	}
	data, err := jsonOf(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// tableOf returns the table for objects of this Go type; for an unstructured object, the table for its apiVersion and
// kind.
func (s *Server) tableOf(object runtime.Object) *table {
	s.t.Helper()
	if u, ok := object.(*unstructured.Unstructured); ok && u != nil {
		for _, t := range s.tables {
			if t.kind == u.GroupVersionKind() {
				return t
			}
		}
	}
	t := s.byType[reflect.TypeOf(object)]
	if t == nil {
		s.t.Fatalf("the API server has no resource for a %T", object)
	}
	return t
}

// stored returns a copy of an object, converted to the form in which the table stores objects.
func (s *Server) stored(t *table, object runtime.Object) runtime.Object {
	s.t.Helper()
	if !t.custom {
		object = object.DeepCopyObject()
		t.stamp(object)
		return object
	}
	data, err := json.Marshal(object)
	if err != nil {
		s.t.Fatal(err)
	}
	custom := &customObject{}
	if err := json.Unmarshal(data, custom); err != nil {
		s.t.Fatal(err)
	}
	t.stamp(custom)
	return custom
}

// typed returns an object in the Go type that a test asks for.
func typed[T any, P Object[T]](s *Server, r *revision) P {
	s.t.Helper()
	if object, ok := r.object.(P); ok {
		return object
	}
	var object P
	if last := r.typed.Load(); last != nil {
		object, _ = (*last).(P)
	}
	if object == nil {
		data, err := r.encode(asJSON)
		if err != nil {
			s.t.Fatal(err)
		}
		object = new(T)
		if err := json.Unmarshal(data, object); err != nil {
			s.t.Fatalf("decoding %s/%s: %v", r.meta.Namespace, r.meta.Name, err)
		}
		var last runtime.Object = object
		r.typed.Store(&last)
	}
	return object.DeepCopyObject().(P)
}
