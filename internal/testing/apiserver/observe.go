// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Observer is called for each change of a stored object, in the order of the changes, and before any client sees the
// change. It must not send requests to the server.
type Observer func(*Written)

// Written is one write of one object.
type Written struct {
	// Resource is the last part of its name, such as "pods".
	Resource string
	// Key is the object's.
	Key types.NamespacedName
	// Process is the name of the client that made the change; empty for the test itself and the garbage collector.
	Process string

	server        *Server
	before, after *revision
}

// Created reports whether the object was not there before.
func (c *Written) Created() bool { return c.before == nil }

// Removed reports whether the object is gone.
func (c *Written) Removed() bool { return c.after == nil }

// Metadata returns the object's metadata after the change, or before it if the change removed the object. Callers must
// not modify it.
func (c *Written) Metadata() *metav1.ObjectMeta {
	if c.after == nil {
		return c.before.meta
	}
	return c.after.meta
}

// Before returns the object before the change; nil if the change created it. Callers must not modify it.
func Before[T any, P Object[T]](c *Written) P { return stateOf[T, P](c, c.before) }

// After returns the object after the change; nil if the change removed it. Callers must not modify it.
func After[T any, P Object[T]](c *Written) P { return stateOf[T, P](c, c.after) }

func stateOf[T any, P Object[T]](c *Written, r *revision) P {
	c.server.t.Helper()
	if r == nil {
		return nil
	}
	return typed[T, P](c.server, r)
}

// SetObserver makes the observer see all changes from now on. It replaces an earlier observer; nil removes it.
func (s *Server) SetObserver(observer Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observer = observer
}

// lockFor locks the server for a request of a process.
func (s *Server) lockFor(c *call) {
	s.mu.Lock()
	s.writing = c.Process
}

func (s *Server) unlock() {
	s.writing = ""
	s.mu.Unlock()
}

// observe passes a change to the observer.
func (s *Server) observe(t *table, before, after *revision) {
	if s.observer == nil {
		return
	}
	r := after
	if r == nil {
		r = before
	}
	s.observer(&Written{Resource: t.Resource.Resource, Key: keyOf(r), Process: s.writing, server: s, before: before, after: after})
}
