// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Hearing is an event handler that is also informed whether an informer of several namespaces shows a namespace
// completely. Either function may be nil. Add the handler before the informer is started. An informer of one
// namespace, or of all, calls only the handler for events.
type Hearing struct {
	cache.ResourceEventHandler
	// Refused is called as soon as a namespace may not be read: even at the start, before the informer has synced. The
	// informer keeps showing the objects of the namespace that it has, and others may exist.
	Refused func(namespace string)
	// Listed is called whenever all objects of a namespace's list are handled, with the list's resource version: the
	// namespace is whole until it is refused. In the beginning each is.
	Listed func(namespace, version string)
}

// heard is an informer of several namespaces with handlers that may get marks.
//
// A handler learns by a marker that the initial list has been processed: the informer enqueues the marker after the
// last listed object. So each namespace is followed there by a mark: the deletion of an object without a name, which
// no handler knows. No other handler sees the mark.
type heard struct {
	cache.SharedIndexInformer
	of *several
}

// AddEventHandler implements cache.SharedInformer.
func (h heard) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return h.SharedIndexInformer.AddEventHandler(h.of.hear(handler))
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (h heard) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return h.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h.of.hear(handler), period)
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (h heard) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return h.SharedIndexInformer.AddEventHandlerWithOptions(h.of.hear(handler), options)
}

// hear passes marks to a handler if the handler takes marks.
func (s *several) hear(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	marked := marked{ResourceEventHandler: handler, of: s}
	if hearing, ok := handler.(Hearing); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hearings = append(s.hearings, hearing)
		marked.listed = hearing.Listed
	}
	return marked
}

// marked is a handler to which marks come.
type marked struct {
	cache.ResourceEventHandler
	of     *several
	listed func(namespace, version string)
}

// OnDelete implements cache.ResourceEventHandler.
func (m marked) OnDelete(object any) {
	mark, err := meta.Accessor(object)
	switch {
	case err != nil || mark.GetName() != "":
		m.ResourceEventHandler.OnDelete(object)
	case m.listed != nil:
		m.of.tellListed(mark, m.listed)
	}
}

// markOf returns a marker that follows the listed objects of a namespace. Its UID contains the number of refusals
// before the list.
func (s *several) markOf(p *part) runtime.Object {
	object := s.example.DeepCopyObject()
	if mark, err := meta.Accessor(object); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		mark.SetNamespace(p.namespace)
		mark.SetResourceVersion(p.at)
		mark.SetUID(types.UID(strconv.Itoa(p.refusals)))
	}
	return object
}

// tellRefused reports that a namespace may not be read.
func (s *several) tellRefused(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.refusals++
	for _, hearing := range s.hearings {
		if hearing.Refused != nil {
			hearing.Refused(p.namespace)
		}
	}
}

// tellListed reports to a handler that a mark has arrived, so the initial list of a namespace is complete, unless the
// namespace was refused since.
func (s *several) tellListed(mark metav1.Object, listed func(namespace, version string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.namespace == mark.GetNamespace() && strconv.Itoa(p.refusals) == string(mark.GetUID()) {
			listed(p.namespace, mark.GetResourceVersion())
		}
	}
}
