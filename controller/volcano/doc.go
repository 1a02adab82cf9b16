// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volcano decides what happens to a Volcano Job: phases, restarts, effects of policies and Commands, and
// completion. The package is pure, like package lifecycle, which does the same for Frameworks: there is no
// client, no clock and no randomness. The input is a Snapshot, and the output is a Plan.
//
// # Persist before act
//
// All memory of a Job is in the status. The controller writes what it is going to do before it deletes Pods:
//
//   - If all Pods are to be deleted, the phase and a new version of the Job.
//   - If a part is to be restarted, the phase, and the part in the message of the state.
//   - If a part joins a restart that is under way, a mark in the record of its task.
//
// So if a controller crashes between any two writes, the next controller continues correctly from the status. What has
// to be persisted, and which actions wait for that:
//
//	P1  first status                 everything
//	P2  a phase                      all that is done in it, and the next phase
//	P3  a new version                deleting the Pods of the old one
//	P4  Restarting, and its targets  marking Pods, then deleting them
//	P5  a record without the index   deleting a Pod that is marked, creating the next
//	P6  phase and UID of a Command   deleting the Command
//	P7  the hash of the spec         making the first object
//
// Every phase that a Job passes is written, one legal step at a time: Decide takes one
// step from the phase that is persisted, and is called again until nothing changes.
//
// # Which Pod is which
//
// Names are fixed, so there is at most one Pod of an index. Annotations of a Pod hold the version of the Job for which
// the Pod was created, and the number of restarts before. The controller deletes Pods of an older version, unless their
// index is on record as ended, and creates no Pod until they are gone. It also deletes Pods with a mark (the annotation
// KeyMark); the end of such a Pod is no event. It remembers no UIDs.
//
// # What is on record
//
// status.controlledResources records which indexes have a Pod, and which have ended (record.go). If an index has a Pod
// on record and the Pod is missing, the Pod was evicted, even if no controller saw that. An index that has ended stays
// ended, also if its Pod is deleted.
//
// # Events
//
// An event is a state that lasts until the controller has reacted to it: a failed Pod without a mark, a missing index
// (events.go). So a restart of the controller neither loses an event nor repeats the reaction. Actions with a delay are
// due at a time after the times in the objects, or, if their Pods may be gone by then, in the record
// (record_moments.go).
//
// # Where to look
//
//	phases.go      which phase may follow which, and what an action does in each phase
//	naturalend.go  how a Job ends by itself
//	events.go      what happens to Pods, tasks and the gang
//	policies.go    which policy decides about an event, and when
//	chorus.go      events that report many Pods together
//	commands.go    what users ask for, exactly once
//	members.go     what a Pod is to the Job
//	missing.go     Pods that may be out of sight
//	counters.go    what is counted
//	record.go      what is remembered of indexes, and of times in record_moments.go
//	dependson.go   when a task may start
//	gang.go        the PodGroup of a version
//	objects.go     when claims and the objects of plugins come and go
//	obstacle.go    why Pods are not created, and how the user sees that
//	ownership.go   which Jobs are ours
//	sizes.go       what the API server has no room for
//	actions.go     what is to be done
//	backoff.go     how soon a Job that was restarted runs again
//	ttl.go         when a Job that is finished is deleted
//	effective.go, validate.go, podtemplate.go, plugins.go, sideobjects.go, volumes.go
//	               what the objects look like
package volcano
