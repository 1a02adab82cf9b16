// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room records what room of nodes is reserved for which gang, which Pods may use that room all the same, and
// when a reservation ends.
//
// A gang has at most one Reservation: members, each on the node where the member is to go, and an end. The rules depend
// only on the reason for the reservation; rules.go has this table as code:
//
//	                            Preemption             InTime              MembersToCome
//	room                        victims leave it       running work does   for Pods that do not exist yet
//	kept from lower priority    yes                    yes                 yes
//	kept from the same          yes (1)                younger Pods and    yes
//	priority                                           gangs
//	kept from higher priority   no                     no                  no
//	kept from DaemonSets        yes                    no                  no
//	kept from gangs that wait   yes                    no                  yes
//	for members of their own
//	kept from work that ends    yes                    no                  yes
//	before the gang needs it
//	limited by the cap          no                     yes                 yes
//	the gang                    lacks its minimum      lacks its minimum   runs, and members are still to come
//	nominates its members       yes                    no                  no
//
//	(1) no, if the gang evicted no Pod: all Pods that it waits for end by themselves
//
// A gang ahead in the queue may ignore the reservations of gangs behind. The order of the queue is total, so no two
// gangs can block each other.
//
// Reservations are not in the scheduler's cache. In the cycle of a gang behind, the room of reserved members is not free
// (package place, ahead.go). For ordinary Pods the plugin's Filter asks MayTake.
//
// The package does not act and reads no clock: the caller passes the time and what runs on the
// nodes. Room and Evictions live from cycle to cycle and are safe for concurrent use. All other
// values are immutable.
package room
