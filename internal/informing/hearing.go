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

// Hearing is an event handler for an informer of several namespaces. It also learns for which namespaces the informer
// shows all objects. Either function may be nil. Add the Hearing before the informer is started. An informer of one
// namespace, or of all, calls only the event handler.
type Hearing struct {
	cache.ResourceEventHandler
	// Refused is called as soon as the API server refuses to let a namespace be read, also before the informer has
	// synced. From then on the informer shows the objects that it had; there may be others.
	Refused func(namespace string)
	// Listed is called when the handler has got all objects of a list of a namespace, with the list's resource version.
	// From then on the informer shows all objects of the namespace, until Refused is called. Before the first call of
	// either, it counts as showing all.
	Listed func(namespace, version string)
}

// heard is an informer of several namespaces that tells its handlers when they have got a whole list.
//
// client-go tells a handler only that the first list is complete. So this informer lets a mark follow the objects of
// each namespace's list, in the same queue: a deletion of an object without a name. Only Hearings get the mark; it is
// hidden from other handlers.
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

// markOf returns the mark that follows the listed objects of a namespace. Its UID contains how often the namespace had
// been refused before the list.
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

// tellListed calls `listed` for the namespace of the mark that has arrived, unless the namespace was refused after the
// list.
func (s *several) tellListed(mark metav1.Object, listed func(namespace, version string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.namespace == mark.GetNamespace() && strconv.Itoa(p.refusals) == string(mark.GetUID()) {
			listed(p.namespace, mark.GetResourceVersion())
		}
	}
}
