// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coscheduling is the scheduler plugin Coscheduling: it places the
// members of a PodGroup in one step or not at all.
//
// # Contract
//
// No member of a group is bound unless, at that moment, the group's minimum can
// be bound with it, counting members that are placed already. A group that
// waits holds nothing, but for room that was made or is kept for it (package room). Pods without the label
// scheduling.lockstep.dev/pod-group are scheduled as by kube-scheduler, of which
// the plugin is a part. A Pod whose label names a group that it is no member of
// waits, and is told so, as one is whose group does not exist (package news). What leans on
// kube-scheduler's inside is in package kube.
//
// # Algorithm
//
// This package is wiring (attach.go). Watches of PodGroups (watch.go) and of their Pods
// (members.go) tell package gangs what happens. It knows of each group who
// waits and who is placed. Groups that are complete stand in a line (package line), which says
// who is next. Members stay out of the scheduling queue (kube/queue.go). When a group is to
// have its turn, a wake-up entry rings in that queue (bell.go, kube/bell.go), and the engine (engine.go)
// runs a gang cycle (cycle.go) instead of a Pod's scheduling cycle, on the scheduler's only
// scheduling goroutine:
//
//  1. gather: a snapshot of the cluster, members that wait, members placed, reservations.
//  2. place (package place): what becomes of the group is decided, and nothing is done.
//     For each class of equal members the Filter plugins look at all nodes once, then
//     all members are placed together (package planner), and the plugins verify that
//     member by member, with the members before it assumed. This is what honours
//     affinity, topology spread, ports, volumes and claims.
//  3. apply: members that have a place are assumed in the scheduler's cache and in package
//     gangs, or all is given up; room is kept or left, victims are evicted (evict.go), the
//     line is told.
//  4. bind (bind.go), in parallel and off the scheduling goroutine.
//
// A group that found no place may preempt work of lower priority (package victims): on a
// snapshot without all that it outranks, the least is chosen that has to go, and the plan
// is verified without just that. The room is reserved until the victims have ended (package
// room, reservations.go, and filter.go for ordinary Pods), and the members are nominated for their
// nodes meanwhile (nominate.go). For a group that starves room is reserved in the same way, where
// the least work has to end, and nobody is evicted. For members that are still to come room is reserved from the start of
// their group.
//
// Reservations are all that a group takes from others between two cycles. They concern only groups that are behind in the queue, which
// is a total order, so no two groups can block each other.
//
// A group that found no place waits until an event may help it (events.go), but
// at least for its back-off. Its PodGroup's conditions say why: package news decides what
// follows from what package gangs knows, and package status writes it.
package coscheduling
