// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volcano decides how a Volcano Job lives: the phases, the restarts, the effects of policies and Commands,
// and the end of a Job. The package is pure, like package lifecycle, which does the same for Frameworks: there is no
// client, no clock and no randomness. The input is a Snapshot, and the output is a Plan.
//
// # Persist before act
//
// The memory of a Job is its own status and nothing else. What is to be done is written first: a phase, with a new
// version of the Job where all Pods go, or with the target in the message of the state where a part is restarted.
// Parts that join a restart which is under way are in the record of their task. Only then Pods are deleted. So a
// controller that dies between any two writes leaves a status from which the next one does the right thing. What has
// to be persisted, and which actions wait for that:
//
//	P1  first status                 everything
//	P2  a phase                      all that is done in it, and the next phase
//	P3  a new version                deleting the Pods of the old one
//	P4  Restarting, and its targets  marking Pods, then deleting them
//	P5  a record without the index   deleting a Pod that is marked, making one anew
//	P6  phase and UID of a Command   deleting the Command
//	P7  the hash of the spec         making the first object
//
// Every phase that a Job passes is written, one legal step at a time: Decide takes one
// step from the phase that is persisted, and is called again until nothing changes.
//
// # Which Pod is which
//
// Names are fixed, so there is at most one Pod of an index. Annotations of a Pod say for which version of the Job the
// Pod was created, and after how many restarts. One of an older version goes, unless its index is on record as ended.
// While one is left, none is made. A Pod with a mark goes too, and its end is no event. Nothing is remembered of
// UIDs.
//
// # What is on record
//
// Which indexes are there and which have ended is in status.controlledResources (record.go). An index with a Pod on
// record that is missing was evicted, even if no controller saw that. An index that has ended stays so, whatever
// becomes of its Pod.
//
// # Events
//
// An event is a state that lasts until something is done about the state: a Pod that failed and has no mark, an index
// that is missing (events.go). So none is lost or acted on twice, whenever a controller begins. When an action with a
// delay is due follows from the times that the objects themselves carry, or from the record, where their Pods may be
// gone by then (record_moments.go).
//
// # Where to look
//
//	phases.go      which phase may follow which, and what an action does in which
//	naturalend.go  how a Job ends by itself
//	events.go      what happens to Pods, tasks and the gang
//	policies.go    which policy decides about an event, and when
//	chorus.go      what is told of many Pods together
//	commands.go    what users ask for, exactly once
//	members.go     what a Pod is to the Job
//	missing.go     Pods that may be out of sight
//	counters.go    what is counted
//	record.go      what is remembered of indexes, and of times in record_moments.go
//	dependson.go   when a task may start
//	gang.go        the PodGroup of a version
//	objects.go     when claims and the objects of plugins come and go
//	obstacle.go    why Pods are not made, and what the user is told of it
//	ownership.go   which Jobs are ours
//	sizes.go       what the API server has no room for
//	actions.go     what is to be done
//	backoff.go     how soon a Job that was restarted runs again
//	ttl.go         when a Job that is finished is deleted
//	effective.go, validate.go, podtemplate.go, plugins.go, sideobjects.go, volumes.go
//	               what the objects look like
package volcano
