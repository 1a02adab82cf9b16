// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// TurnKind is what has happened in a Turn.
type TurnKind int

const (
	// AttemptStarted: an attempt of the owner has begun.
	AttemptStarted TurnKind = iota
	// AttemptCompleted: an attempt has ended. There are Code and Type.
	AttemptCompleted
	// Retried: there is another attempt. There is a Reason.
	Retried
	// Ran: the owner runs for the first time. Took is the time since the creation.
	Ran
	// Waited: the owner waited, and does no longer. There are the last Reason, and Took.
	Waited
	// Completed: the owner has ended. There is a Type.
	Completed
)

// Turn is a counted step in the life of an owner. Its texts come from small sets and never from users, so that the
// number of metrics is bounded.
type Turn struct {
	Kind TurnKind
	// Task says that the turn is about an attempt of a task, and not of the whole owner.
	Task bool
	// Code and Type say how an attempt has ended, and Reason says why there is another one, or what
	// was waited for.
	Code, Type, Reason string
	// Took is how long that took; 0 if a clock says less.
	Took time.Duration
}
