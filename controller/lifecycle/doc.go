// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides what happens to a Framework: attempts, retries, rescales and completion. The package is pure. There is no client, no clock and no randomness: the input is a Snapshot, random numbers
// and new UIDs come from an Entropy, and the output is a Plan.
//
// # Persist before act
//
// A Snapshot holds two statuses: Persisted, which the API server is known to have, and Status, which is Persisted
// plus changes that wait to be written. A Plan holds the next Status and Actions. A Plan contains
// an action only if Persisted has the decision for it. Otherwise Plan.Persist becomes urgent, and the Plan after the
// write contains the action. Facts that can be observed again (UIDs of created objects, Preparing) need not be written.
// So if a controller crashes between any two writes, the next controller continues correctly from the status. What has
// to be persisted, and which actions wait for that:
//
//	P1   attempt CreationPending, and its gang   creating its ConfigMap
//	P2   task CreationPending                    creating its Pod
//	P3   mark of a rescale                       ending, removing or replacing the task
//	P4   changed podGracefulDeletionTimeoutSec   deleting Pods
//	P5   end of the attempt                      deleting its ConfigMap
//	P6   end of the task's attempt               deleting its Pod
//	P7   task AttemptCompleted                   deciding on its retry, and its history
//	P8   attempt AttemptCompleted                deciding on its retry, and its history
//	P9   end of a marked task                    removing or replacing it, and its history
//	P10  Framework Completed                     deleting it, and its history
//	P11  first status                            everything
//	P12  new scale                               applying the completion policy
//
// # One round
//
// Decide runs the stages, which decide.go lists, in order. A stage may end the round. Then Decide sets the conditions,
// and derives the actions from the status (actions.go). The caller writes the status when Plan.Persist says so, runs
// the actions, and calls Decide again with the results, until a Plan is empty.
//
// # Values
//
// A TaskStatus that is part of a status is never changed; a change makes a copy. Statuses share the tasks that are
// equal in both. So a round costs little more than reading each task, and comparing two statuses is mostly a comparison
// of pointers.
//
// # Where to look
//
//	completion.go  when and how an attempt completes
//	retry.go       whether it is followed by another, and when
//	rescale.go     tasks and roles that come and go
//	gang.go        what an attempt that is a gang has besides
//	recovery.go    what a gang has lost and waits to have back
//	priority.go    which PriorityClass its Pods have
//	history.go     what is kept of attempts that are over
//	disruption.go  which ends of Pods are no failures of theirs
//	waiting.go     for what tasks wait that don't run
//	preparing.go   how long they may
//	conditions.go  what the status says in a few words
//	podfailure.go  what a failed Pod is called
//	pod.go         what a Pod looks like
//	transition.go  which state may follow which
package lifecycle
