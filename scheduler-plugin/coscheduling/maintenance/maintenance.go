// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance knows from when on nodes are maintained, and which work may start on them until then. It has no client and no clock.
package maintenance

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// ReasonInvalidMaintenance: the annotation of a Node that says from when on the Node is maintained is no time, and does not count.
const ReasonInvalidMaintenance = "InvalidMaintenance"

// From returns from when on a node is maintained, zero if it is not. The error says why its annotation is no time.
func From(node *corev1.Node) (time.Time, error) {
	text, has := node.Annotations[schedulingv1alpha1.AnnotationMaintenanceFrom]
	if !has {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("the annotation %s is no time as RFC 3339 has it, such as 2026-01-31T18:00:00Z, and does not count: %.64q",
			schedulingv1alpha1.AnnotationMaintenanceFrom, text)
	}
	return at, nil
}

// Changed reports whether a node that has changed may be maintained at another time.
func Changed(was, is *corev1.Node) bool {
	return was.Annotations[schedulingv1alpha1.AnnotationMaintenanceFrom] != is.Annotations[schedulingv1alpha1.AnnotationMaintenanceFrom]
}

// Closes reports whether work may not start on a node that ends at a time, zero if nobody knows when. It asks the node alone: kube-scheduler
// tries a Pod again as soon as its cache has the node, and Windows may learn of the node later.
func Closes(node *corev1.Node, ends time.Time) bool {
	from, err := From(node)
	return err == nil && isClosed(from, ends)
}

// isClosed reports whether work that ends at a time may not start on a node that is maintained from another time on; zero stands for no
// known end and for no maintenance.
func isClosed(from, ends time.Time) bool {
	return !from.IsZero() && (ends.IsZero() || ends.After(from))
}

// Windows are the nodes that are maintained, by name. It is safe for concurrent use, and the zero Windows has none.
type Windows struct {
	mu    sync.RWMutex
	from  map[string]time.Time
	count atomic.Int32
}

// Set notes from when on a node is maintained, zero for never.
func (w *Windows) Set(node string, from time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from == nil {
		w.from = make(map[string]time.Time)
	}
	if w.from[node] = from; from.IsZero() {
		delete(w.from, node)
	}
	w.count.Store(int32(len(w.from)))
}

// Any reports whether any node is maintained. It costs nothing.
func (w *Windows) Any() bool { return w.count.Load() > 0 }

// Close reports whether work may not start on a node that ends at a time, zero if nobody knows when.
func (w *Windows) Close(node string, ends time.Time) bool {
	if !w.Any() {
		return false
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return isClosed(w.from[node], ends)
}

// Closed returns on how many nodes such work may not start. Work for which that is the same number may start on the same nodes.
func (w *Windows) Closed(ends time.Time) int {
	if !w.Any() {
		return 0
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := 0
	for _, from := range w.from {
		if isClosed(from, ends) {
			n++
		}
	}
	return n
}
