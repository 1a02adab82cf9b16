// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Known holds what the engine knows of an owner besides metadata and spec, and the results of the last Plan. All
// fields are read only. S is the type of the status.
type Known[S any] struct {
	// Version is the newest known resource version of the owner: that of the cache, or that of the last write or live
	// read if the cache is not as new.
	Version string
	// Persisted is the newest status that the API server is known to have accepted, as a whole. It may have been
	// shortened by Decider.Shorten, or come from a later Plan, if the answer to a write was lost. Nil before the first
	// write.
	Persisted *S
	// Status is the status of the last Plan: Persisted and the changes that are not written yet. Nil before the first
	// Plan.
	Status *S
	// Current means that Persisted is, or was since this controller began, what the API server has: this controller has
	// written it, or has compared it by a live read. Until then a core creates nothing, and plans a CheckStatus. Even
	// if Current is true, another controller may have written since.
	Current bool
	// Kept is how much of the status the API server stores, according to the last live read of a status that this core
	// has written (Core.Kept).
	Kept Kept
	// Checked has the UIDs in Action.Seen of a CheckStatus that has confirmed Persisted. A status is always written
	// before the objects in that status are created. So if Persisted does not mention a checked object, no status ever
	// will: the object is a leftover.
	Checked map[types.UID]bool
	// Gone has the UIDs of objects that are certainly gone. An object that is neither in the caches nor in Gone may
	// only have lost a label, which a live read shows.
	Gone map[types.UID]bool
	// Deleted has the UIDs of objects that the API server has agreed to delete, so that deletions are not requested
	// again while the cache is behind. The engine may forget these UIDs, because deleting twice does no harm.
	Deleted map[types.UID]bool
	// Forced has the UIDs of Pods that were deleted by force and are gone, though the cache may still show them. The
	// engine may forget these UIDs, too.
	Forced map[types.UID]bool
	// Terminating is when the deletion of each object that the decision sees was first seen, by the controller's own
	// clock.
	Terminating map[types.UID]time.Time
	// Blocked are the creations and updates that are refused for now and are tried again. Their order does not change.
	Blocked []Block
	// Outcomes are what became of the last Plan's actions. Each is given once.
	Outcomes []Outcome
	// UnknownFields names, in words for users, the fields of the owner's Pod templates that the API server does not
	// know. FieldsKnown reports that the API server has answered for all templates.
	UnknownFields string
	FieldsKnown   bool
}

// WasListed reports whether the last Plan listed the owner's objects of a kind, so that the core sees them as they are.
func (k *Known[S]) WasListed(kind string) bool {
	return slices.ContainsFunc(k.Outcomes, func(outcome Outcome) bool {
		return outcome.Action.Verb == List && outcome.Action.Kind == kind
	})
}
