// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Rank is the place of a gang in the queue: higher priority first, then the older PodGroup,
// then the name, the namespace and the dialect. The order is total. A rank does not change while the gang waits, unless
// members of another priority come or go, or a PriorityClass does.
type Rank struct {
	// Priority is that of the gang's most important member, and no higher than the
	// PriorityClass of its PodGroup.
	Priority int32
	// Created is when its PodGroup was created.
	Created time.Time
	Key     dialect.Key
}

// Compare is negative if r is ahead of other. Lines are long, so it looks at no more than it has to.
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
