// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Rank is the place of a gang in the queue: higher priority first, then the older PodGroup, then by name, namespace and
// PodGroup API. The order is total. A rank changes only if a PriorityClass changes, or if members of another priority
// come or go.
type Rank struct {
	// Priority is the highest priority of a member, but at most that of the PodGroup's PriorityClass.
	Priority int32
	// Created is when the PodGroup was created.
	Created time.Time
	Key     dialect.Key
}

// Compare is negative if r is ahead of `other`.
func (r Rank) Compare(other Rank) int {
	if c := -cmp.Compare(r.Priority, other.Priority); c != 0 {
		return c
	}
	if c := r.Created.Compare(other.Created); c != 0 {
		return c
	}
	if c := cmp.Compare(r.Key.Name, other.Key.Name); c != 0 {
		return c
	}
	return r.Key.Compare(other.Key)
}
