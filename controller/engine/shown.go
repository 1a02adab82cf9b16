// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// shownVersions says up to which resource version a cache shows the objects of each namespace. A
// cache of several namespaces knows only the version of its last news, and that of one namespace
// says nothing of another: see informing.Namespaces.
type shownVersions struct {
	store cache.Store

	mu sync.Mutex
	of map[string]string
}

// watchShown has what an informer shows noted. Deletions count: they have versions of their own. So
// does a new list, which is of one moment in all namespaces.
func watchShown(informer cache.SharedIndexInformer) (*shownVersions, error) {
	s := &shownVersions{store: informer.GetStore(), of: map[string]string{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, _ bool) { s.note(object, resourceVersion(object)) },
		UpdateFunc: func(old, new any) {
			if resourceVersion(old) == resourceVersion(new) { // It was listed anew.
				s.note(new, s.store.LastStoreSyncResourceVersion())
				return
			}
			s.note(new, resourceVersion(new))
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok { // A list lacked it.
				s.note(missed.Obj, s.store.LastStoreSyncResourceVersion())
				return
			}
			s.note(object, resourceVersion(object))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("following its versions: %w", err)
	}
	return s, nil
}

func (s *shownVersions) note(object any, version string) {
	accessor := objectMeta(object)
	if accessor == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespace := accessor.GetNamespace(); !atLeast(s.of[namespace], version) {
		s.of[namespace] = version
	}
}

// in is the version up to which a namespace is shown, empty if none of its objects ever was.
func (s *shownVersions) in(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[namespace]
}
