// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room says what room is kept for gangs that wait, for how long, and who has to
// leave it alone.
//
// A gang that waits takes nothing from anybody, but for a Claim: its members on the nodes
// where they are to go, and an end. There are three kinds, and a fourth one for a gang that has its
// minimum:
//
//   - a Reservation keeps the room that preemption makes, while the victims end.
//   - a Vacancy keeps the room of Pods that end anyway.
//   - a Barrier is for a gang that starves: its members are on nodes where work still runs,
//     and what that work leaves when it ends is kept.
//   - a Provision keeps room for members that are still to come (package provision).
//
// A gang has one at most. Who has to leave it alone:
//
//	                        Reservation   Vacancy   Barrier
//	of lower priority       all           all       all but Pods of DaemonSets
//	of the same priority    all           nobody    Pods younger than the gang
//	                                                (none of a DaemonSet)
//	of higher priority      nobody        nobody    nobody
//	gangs behind            all           those of  all but those that have lost
//	                                      lower     members and need them back, and
//	                                      priority  once those with a Provision
//
// A Provision is left alone as a Reservation is, but by Pods of DaemonSets.
//
// Gangs ahead in line leave nothing alone. The line is a total order, so no two gangs
// keep each other from room.
//
// Claims are not in the scheduler's cache. Gangs behind find the members of a Claim
// assumed in the snapshot of their cycle. Ordinary Pods are asked to leave it alone by
// the plugin's Filter (ordinary.go).
//
// The package acts on nothing, and holds no clock: what time it is, and what runs on the
// nodes, is for the caller to say. Room and Evictions are what is remembered from one
// cycle to another, and safe for concurrent use. All else is values that don't change.
package room
