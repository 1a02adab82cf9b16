// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangs knows all gangs: which Pods are members of which gang, which members wait, which are placed, and which
// gangs are complete. The package is pure: callers report events and read the state, and pass functions for the time
// and for the values of PriorityClasses (Config).
//
// # Inputs and outputs
//
// Gangs takes the events, Cycles begins and ends scheduling cycles, and a Reader reads.
//
//	a Pod or a PodGroup is new, changed or gone     Gangs.SetPod, DeletePod,
//	                                                SetGroup, DeleteGroup       (gangs.go)
//	members are being preempted, room is reserved   Gangs.SetLeaving, SetKept   (changes.go)
//	an event in the cluster may help a gang         Gangs.Happened, Wake        (changes.go)
//	groups of a kind can't be read, or can again    Gangs.SetUnread             (census.go)
//	a cycle begins or ends                          Cycles.Begin, RefuseAlike, Refuse (cycles.go)
//	members get a node, or are not bound there      Cycles.Assume, Unassume     (cycles.go)
//
//	a gang at the begin of its cycle                View                        (view.go)
//	the state of a gang, for reports                Reader.Look, LookAt         (look.go)
//	which Pods go if a member goes                  Guard                       (guard.go)
//	what is to be done because of changes           Follower.Take, Due          (due.go)
//
// # The states of a member
//
// A member waits, is placed, or does not count (member.go). A gang counts its members by state, and all decisions
// follow from the counts. A gang is complete if its minimum could hold with all waiting members placed; only complete
// gangs are in the queue (package queue). When preemption takes too many members, the rest of the gang is evicted
// (breach.go). A Pod that names a group may still be no member (stranger.go).
//
// A gang (gang.go) is a plain value with transitions (transitions.go). Gangs holds all gangs, the queue, and one lock
// for both: each event is one step, from one consistent state to the next.
package gangs
