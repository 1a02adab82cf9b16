// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Key names an object to sync. Objects of several kinds may share a queue.
type Key struct {
	// Kind may be empty if there is one kind only.
	Kind string
	cache.ObjectName
}

// Queue is a queue of objects in which namespaces take turns: if one namespace has a thousand objects, the next object
// of another namespace waits for only one of them.
type Queue = workqueue.TypedDelayingInterface[Key]

// NewQueue makes a queue. The name is that of the queue's metrics.
func NewQueue(name string, clock clock.WithTicker) Queue {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Clock: clock,
		Name:  name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{
			Clock: clock,
			Name:  name,
			Queue: &turns{waiting: map[string][]Key{}},
		}),
	})
}

// turns is a workqueue.Queue in which namespaces take turns. The calling queue locks it.
type turns struct {
	// waiting has the keys of each namespace, and order the namespaces that have any.
	waiting map[string][]Key
	order   []string
	length  int
}

// Touch does nothing: a key keeps the place.
func (t *turns) Touch(Key) {}

// Push puts a key behind those of the same namespace.
func (t *turns) Push(key Key) {
	if len(t.waiting[key.Namespace]) == 0 {
		t.order = append(t.order, key.Namespace)
	}
	t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
	t.length++
}

// Len returns the number of keys.
func (t *turns) Len() int { return t.length }

// Pop takes the first key of the next namespace in turn.
func (t *turns) Pop() Key {
	namespace := t.order[0]
	t.order = t.order[1:]
	keys := t.waiting[namespace]
	key := keys[0]
	if keys = keys[1:]; len(keys) > 0 {
		t.waiting[namespace] = keys
		t.order = append(t.order, namespace)
	} else {
		delete(t.waiting, namespace)
	}
	t.length--
	return key
}
