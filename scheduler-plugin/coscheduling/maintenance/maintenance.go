// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance records when nodes are to be maintained, and decides which work may still start on them before.
// It has no client and no clock.
package maintenance

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/times"
)

// ReasonInvalidMaintenance: a Node's annotation for the start of maintenance is not a valid time, and is ignored.
const ReasonInvalidMaintenance = "InvalidMaintenance"

// From returns when the maintenance of a node begins, zero if none is planned. It returns an error if the node's
// annotation is not a valid time.
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

// Changed reports whether an update of a node may have changed its maintenance.
func Changed(was, is *corev1.Node) bool {
	return was.Annotations[schedulingv1alpha1.AnnotationMaintenanceFrom] != is.Annotations[schedulingv1alpha1.AnnotationMaintenanceFrom]
}

// Closes reports whether work that ends at the given time may not start on a node, because maintenance begins before;
// zero means that the end is unknown. Closes does not use Windows, which may get a change of the node earlier or later
// than kube-scheduler's cache: kube-scheduler retries Pods when its cache has the change.
func Closes(node *corev1.Node, ends time.Time) bool {
	from, err := From(node)
	return err == nil && isClosed(from, ends)
}

// isClosed reports whether work may not start on a node. `from` is when the node's maintenance begins, zero for none.
// ends is when the work ends, zero if unknown.
func isClosed(from, ends time.Time) bool {
	return !from.IsZero() && (ends.IsZero() || ends.After(from))
}

// Windows are the nodes with planned maintenance, by name. Safe for concurrent use; the zero value has none.
type Windows struct {
	mu    sync.RWMutex
	from  map[string]time.Time
	count atomic.Int32
}

// Set records when the maintenance of a node begins, zero for none.
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

// Any reports whether any node has planned maintenance. It is cheap.
func (w *Windows) Any() bool { return w.count.Load() > 0 }

// Closed returns on how many nodes work that ends at the given time may not start, and the last time at which the maintenance
// of one of them begins. If the number is the same for two ends, the nodes are the same, too.
func (w *Windows) Closed(ends time.Time) (nodes int, last time.Time) {
	if !w.Any() {
		return 0, time.Time{}
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, from := range w.from {
		if isClosed(from, ends) {
			nodes++
			last = times.Later(last, from)
		}
	}
	return nodes, last
}
