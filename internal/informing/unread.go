// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Unread records which namespaces some informers may not read. Objects that the program does not know may exist there,
// so the program decides nothing about such a namespace.
type Unread struct {
	// several reports whether the informers watch several namespaces. Otherwise nothing is recorded, and nothing needs
	// to be: an informer of one namespace, or of all, does not sync before it may read.
	several  bool
	readable func(namespace string)

	mu sync.Mutex
	// by is the number of informers that may not read a namespace.
	by map[string]int
}

// Unread returns a record for informers that are added later. readable is called when all these informers may read a
// namespace again.
func (n Namespaces) Unread(readable func(namespace string)) *Unread {
	return &Unread{several: len(n) > 1, readable: readable, by: map[string]int{}}
}

// Follow adds an informer of the namespaces, before the informer is started.
func (u *Unread) Follow(informer cache.SharedIndexInformer) error {
	if !u.several {
		return nil
	}
	refused := map[string]bool{} // mu guards it.
	_, err := informer.AddEventHandler(Hearing{
		ResourceEventHandler: cache.ResourceEventHandlerFuncs{},
		Refused: func(namespace string) {
			u.mu.Lock()
			defer u.mu.Unlock()
			if !refused[namespace] {
				refused[namespace] = true
				u.by[namespace]++
			}
		},
		Listed: func(namespace, _ string) {
			u.mu.Lock()
			was := refused[namespace]
			if was {
				delete(refused, namespace)
				if u.by[namespace]--; u.by[namespace] == 0 {
					delete(u.by, namespace)
				}
			}
			whole := u.by[namespace] == 0
			u.mu.Unlock()
			if was && whole {
				u.readable(namespace)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("following which namespaces may be read: %w", err)
	}
	return nil
}

// Has reports whether an informer may not read a namespace.
func (u *Unread) Has(namespace string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.by[namespace] > 0
}

// Count returns the number of such namespaces.
func (u *Unread) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.by)
}
