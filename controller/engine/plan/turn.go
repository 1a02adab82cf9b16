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
	// Ran: the owner runs for the first time. Took is the time since its creation.
	Ran
	// Waited: the owner waited, and does not wait any more. Reason is why it waited last, and Took for how long.
	Waited
	// Completed: the owner has ended. There is a Type.
	Completed
)

// Turn is a counted step in the life of an owner. Its texts come from small sets and never from users, so that the
// number of metrics is bounded.
type Turn struct {
	Kind TurnKind
	// Task means that the turn is about an attempt of a task, and not about the owner itself.
	Task bool
	// Code and Type say how an attempt has ended. Reason is why there is another attempt, or what was waited for.
	Code, Type, Reason string
	// Took is how long that took; 0 if a clock says less.
	Took time.Duration
}
