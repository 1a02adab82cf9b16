// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue decides which gang is planned next, and when. The package is pure: callers report what has happened and
// pass the time.
//
// # The queue
//
// A gang is in the queue while the gang is complete and has waiting members. Such a gang is in one of these states:
//
//   - ready: the gang may have a cycle, at once or after its back-off. A gang that is new or has changed is ready.
//   - in its cycle: the gang is being planned. There is one such gang at a time.
//   - refused: the gang found no place in its cycle. The gang becomes ready when something has happened that may help, or
//     at the time that the refusal named.
//
// Of the gangs that may have a cycle now, the first by rank has the next cycle (rank.go).
//
// # Gangs that are alike
//
// Gangs of one shape all find a place or all find none. Refused gangs of a shape wait together (shape.go). When an
// event may help (need.go), the first of them is ready again. If this gang is placed, the next one is ready; if not,
// all the others count as refused, too. So an event costs one plan for each shape, however many gangs have the shape.
// If nothing happens for some minutes (idleAfter), the same is done. A gang that a debt or failed bindings bar from
// having cycles leaves the attempt to the next gang.
//
// Which shape a gang has may change with time: gangs that end before room is needed for a gang ahead may use that room, and have
// another shape than gangs that run for longer. If the room is needed later than before, more gangs end before. So a
// refusal says up to which run time gangs have another shape now (Refusal.Gap), and those among the waiting gangs are ready again.
//
// The gangs of a shape share one back-off: that of the gang that was refused the least often. So a new gang does not
// wait because another gang was refused for an hour.
//
// A refusal counts only for gangs behind the refused one. A gang ahead is planned itself: reservations keep less from
// it, and it may need less.
//
// # Back-off
//
// A refused gang backs off, for a time that doubles with each refusal and starts over when there is more room for the
// gang. A gang may have a cycle during its back-off if otherwise a gang behind would have the next cycle, as the room
// may be meant for the gang ahead. This happens at most once in the length of the shortest back-off, and never in two
// successive cycles. A gang whose members could not be bound has a separate back-off, which nothing shortens: such a
// gang does not lack room. A cycle that took too long puts the gang's namespace in debt (debt.go).
//
// # Reservations
//
// Only one gang has the right to a reservation: the first by rank of those that were refused or are in their cycle. A
// gang for which no room can be reserved gives up that right for a while (first.go). A gang that gets the right has a cycle
// at once, even during its back-off, because otherwise a gang behind could take the room first (Queue.entitle).
package queue
