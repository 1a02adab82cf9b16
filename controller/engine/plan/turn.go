// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// TurnKind is what has happened in a Turn.
type TurnKind int

const (
	// AttemptStarted: an attempt of the owner has begun.
	AttemptStarted TurnKind = iota
	// AttemptCompleted: an attempt has ended. It has Code and Type.
	AttemptCompleted
	// Retried: there is another attempt. It has a Reason.
	Retried
	// Ran: the owner runs for the first time. Took is the time since its creation.
	Ran
	// Waited: it waited, and does no longer. It has a Reason, the last one, and Took.
	Waited
	// Completed: the owner has ended. It has a Type.
	Completed
)

// Turn is something in the life of an owner that is counted. The texts are of small sets, whatever users write into
// their objects.
type Turn struct {
	Kind TurnKind
	// Task says that it is about an attempt of a task, and not of the whole owner.
	Task bool
	// Code and Type say how an attempt has ended, and Reason says why there is another one, or what
	// was waited for.
	Code, Type, Reason string
	// Took is how long it took; 0 if a clock says that it was less.
	Took time.Duration
}
