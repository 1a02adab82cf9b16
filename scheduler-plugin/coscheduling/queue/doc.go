// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue decides which gang is planned next, and when. It is pure: it holds no
// clock, no lock and no client. Whoever uses it says what has happened and what time it
// is.
//
// # The queue
//
// A gang is in the queue while it is complete and has members that wait. It is in one of these states:
//
//   - ready: it may have a cycle, at once or when its back-off is over. Gangs are ready when
//     they are new or have changed.
//   - in its cycle: it is being planned. There is one at a time.
//   - refused: its cycle came and it found no place. It is ready again when something has
//     happened that may help it, or when a time has come that it was given.
//
// Of the gangs that may have a cycle now, the first by rank has it (rank.go).
//
// # Gangs that are alike
//
// Gangs of one shape find a place or don't together. Those that were refused wait
// together (shape.go): of all of them the first is ready again when something happens
// that may help (need.go). If it is placed, the next one is; if it is refused, the others
// are refused with it. So an event costs one plan for each shape, however many gangs there
// are of it, and so does a minute in which nothing is known to happen. A gang that is barred
// from having cycles, by a debt or by bindings that failed, leaves it to the next one to show
// whether there is room.
//
// They have one back-off, which is that of the gang among them that was refused the least
// often: a gang that has come lately is not to wait for one that was refused for an hour.
//
// A refusal says something of the gangs behind the refused one. One ahead is planned itself:
// less is reserved from it, and it may need less.
//
// # Back-off
//
// A gang that is refused backs off: for a time that doubles with each refusal, and starts
// over when the room for it has grown. It may have a cycle in its back-off if a gang behind
// it would have one otherwise, as the room may be meant for it; once in its shortest
// back-off at most, and no two such cycles follow each other. A gang whose members could not be bound backs off by a count of its
// own, which nothing shortens: it does not lack room. A gang whose cycle took too long
// puts its namespace in debt (debt.go).
//
// # Help
//
// The first gang by rank of those that were refused, or are in their cycle, has a right to be
// helped: to have room reserved for it. One that can't be
// helped gives up its right for a while (first.go).
package queue
