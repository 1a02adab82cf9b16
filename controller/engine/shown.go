// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// shownVersions records up to which resource version a cache shows each namespace. A cache of several namespaces has a
// watch for each, so the version of one namespace says nothing about another: see informing.Namespaces.
type shownVersions struct {
	mu sync.Mutex
	of map[string]string
}

// watchShown returns a record that follows an informer: its objects, deletions, and lists, even empty ones.
func watchShown(informer cache.SharedIndexInformer) (*shownVersions, error) {
	s := &shownVersions{of: map[string]string{}}
	_, err := informer.AddEventHandler(informing.Hearing{
		ResourceEventHandler: cache.ResourceEventHandlerFuncs{
			AddFunc:    s.noteObject,
			UpdateFunc: func(_, now any) { s.noteObject(now) },
			DeleteFunc: func(object any) {
				if _, missed := object.(cache.DeletedFinalStateUnknown); !missed { // The list that lacked it counts.
					s.noteObject(object)
				}
			},
		},
		Listed: s.list,
	})
	if err != nil {
		return nil, fmt.Errorf("following its versions: %w", err)
	}
	return s, nil
}

func (s *shownVersions) noteObject(object any) {
	if accessor := objectMeta(object); accessor != nil {
		s.note(accessor.GetNamespace(), accessor.GetResourceVersion())
	}
}

func (s *shownVersions) note(namespace, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !atLeast(s.of[namespace], version) {
		s.of[namespace] = version
	}
}

// list records that the informer shows all objects that a namespace had at a version. If etcd was restored from a
// backup, the version may be older than the one recorded before.
func (s *shownVersions) list(namespace, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[namespace] = version
}

// in returns the version up to which a namespace is shown, empty if never.
func (s *shownVersions) in(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[namespace]
}
