// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tombstone reads the events of informers.
package tombstone

import "k8s.io/client-go/tools/cache"

// Object is the object of an event. For a deleted object whose event was missed, which an informer wraps, it is the
// object as last seen.
func Object(event any) any {
	if missed, ok := event.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return event
}
