// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Known holds what the engine knows of an owner besides metadata and spec, and the results of the last Plan. All
// fields are read only. S is the type of the status.
type Known[S any] struct {
	// Version is the newest resource version of the owner that is known: the cached status, or that of the last write or
	// live read, if the cache is not as new.
	Version string
	// Persisted is the newest status that the API server is known to have taken, whole: the content may be what
	// Decider.Shorten has made, or the status of a later Plan if the answer to its write was lost. Nil before the first
	// write.
	Persisted *S
	// Status is the last Plan's: Persisted and what is not yet written. Nil before
	// the first Plan.
	Status *S
	// Current says that Persisted is what the API server holds, or once did since this controller began: this controller
	// wrote the status, or compared it with a live look. Before, a core creates nothing: the core plans a CheckStatus.
	// Another controller may have written since.
	Current bool
	// Kept is how much of the status the API server keeps, by the last live look that has found
	// one of this core there (Core.Kept).
	Kept Kept
	// Checked holds the UIDs of objects that were in Action.Seen of a CheckStatus that has found Persisted to be what
	// the API server holds. The status is persisted before an object is created, so an object that no status waits for
	// is a leftover, and stays one.
	Checked map[types.UID]bool
	// Gone holds the UIDs of objects that are certainly gone. An object that is neither in the caches nor here may only
	// have lost a label: a live look shows that.
	Gone map[types.UID]bool
	// Deleted holds the UIDs of objects with an accepted deletion, so that the deletion is not requested again while the
	// cache is behind. This may be forgotten: deletion is idempotent.
	Deleted map[types.UID]bool
	// Forced holds the UIDs of Pods that are gone after a deletion by force, while the cache may still show them. This
	// may be forgotten too.
	Forced map[types.UID]bool
	// Terminating is when, by the controller's own clock, the deletion of objects was first seen, for the objects that
	// the decision sees.
	Terminating map[types.UID]time.Time
	// Blocked are the creations and updates that are refused for now and will be tried again, in a fixed order.
	Blocked []Block
	// Outcomes are what became of the last Plan's actions. Each is given once.
	Outcomes []Outcome
	// UnknownFields lists, for people, the unknown fields in the owner's Pod templates. FieldsKnown reports that the
	// API server has answered for all templates.
	UnknownFields string
	FieldsKnown   bool
}
