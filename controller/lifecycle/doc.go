// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides how a Framework lives: from the first status over attempts, retries and rescales to the
// end. The package is pure. There is no client, no clock and no randomness: the input is a Snapshot, random numbers
// and new UIDs come from an Entropy, and the output is a Plan.
//
// # Persist before act
//
// A Snapshot holds two statuses: Persisted, which the API server is known to have, and Status, which is Persisted
// plus changes that wait to be written. A Plan holds the next Status and Actions. No action rests on a decision that
// Persisted lacks: an action that does is not in the Plan, but makes Plan.Persist urgent, and appears in the Plan
// that is made after the write. What can be observed again (UIDs of created objects, Preparing) need not be written.
// So a controller that dies between any two writes leaves a status from which the next one does the right thing. What
// has to be persisted, and which actions wait for that:
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
// Decide goes through the stages, which decide.go names, in order. A stage may end the round. At last the conditions
// are made, and the actions that the status calls for are derived (actions.go). The caller writes the status when
// Plan.Persist says so, runs the actions, and calls again with the results, until a Plan asks for nothing.
//
// # Values
//
// A TaskStatus is never changed once it is part of a status: a change makes a
// copy. Statuses share the tasks that are equal in both, so that a round costs
// little more than a look at each task, and "was this written?" is mostly a
// comparison of pointers.
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
