// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangs knows the gangs: which Pods are members of which, who of them waits and who
// is placed, and so which gangs are complete. It is pure: it holds no client, no clock and
// no log. What happens is told to it, and what it knows is asked of it; what time it is, and
// what a PriorityClass is worth, it asks for by functions that it is given.
//
// # The events in, and what comes out
//
// Gangs takes the events, Cycles begins and ends scheduling cycles, and a Reader reads.
//
//	a Pod or a PodGroup has come, changed, gone     Gangs.SetPod, DeletePod,
//	                                                SetGroup, DeleteGroup       (gangs.go)
//	members are being preempted, room is kept       Gangs.SetLeaving, SetKept   (changes.go)
//	something has happened that may help            Gangs.Happened, Wake        (changes.go)
//	groups of a kind can't be read, or can again    Gangs.SetUnread             (census.go)
//	a cycle begins, and how it ends                 Cycles.Begin, Alike, Refuse (cycles.go)
//	members have a node, and are not bound there    Cycles.Assume, Unassume     (cycles.go)
//
//	a gang as its cycle finds it                    View                        (view.go)
//	what is known of a gang, to be reported         Reader.Look, LookAt         (look.go)
//	what goes if a member does                      Guard                       (guard.go)
//	what is to be done about what has happened      Follower.Take, Due          (due.go)
//
// # The states of a member
//
// A member waits, is placed, or counts for nothing (member.go). A gang's counts follow from
// the states of its members, and all that it does from its counts: it is complete if its
// minimum could hold with all that waits, and just then it is in the queue (package queue). A gang
// that preemption has broken is dissolved: what is left of it is to be evicted (breach.go).
// A Pod that names a group may be no member of it (stranger.go).
//
// A gang (gang.go) is a plain value with transitions (transitions.go). Gangs is the table of
// them, with the queue and the one lock that guards both: each event is one step, from one
// whole state to the next.
package gangs
