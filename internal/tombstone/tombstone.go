// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tombstone reads the events of informers.
package tombstone

import "k8s.io/client-go/tools/cache"

// Object returns the object of an informer's event. If the informer missed the deletion, the event wraps the last known
// state of the object, and Object returns that.
func Object(event any) any {
	if missed, ok := event.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return event
}
