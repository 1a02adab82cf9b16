// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place seeks a place for a gang: the input is the gang and the cluster, the output what is to be done.
//
// # Contract
//
// Place takes a Gang and a Cluster (view.go) and returns an Outcome (outcome.go). The Outcome is data. An Outcome names
// members and their nodes, or the reason why there are none; the Pods to evict for the gang; the room to reserve for
// the gang; and when to try again. The caller does all of that, or discards the Outcome. Place itself binds, evicts,
// reserves and reports nothing.
//
// Place changes two things while running, because plugins look at nothing else:
//
//   - the snapshot. Place assumes members and reservations there, and removes Pods that might end.
//     Place restores the snapshot before returning.
//   - the state of Reserve plugins, which set volumes and devices aside. A member can be verified
//     only after the volumes and devices of the members before it are set aside. Place undoes all
//     of this, except for the Placements of the Outcome: a caller that does not assume these has to
//     call kube.UndoReserve. Nothing of this is in the API server before a member is bound.
//
// What the Filter plugins said of the nodes (a pass, pass.go) is kept for the next gang, to save time. That may decide
// which of several equally good nodes a gang gets, but not whether it gets a place.
//
// Place runs on the scheduling goroutine, as one scheduling cycle, and never concurrently with another cycle.
//
// # Algorithm
//
//  1. admit (place.go): the PreEnqueue plugins say which members may be scheduled.
//  2. respect (ahead.go): what members of gangs ahead will take, for which room is reserved, is not free for the gang.
//  3. survey (world.go): members with the same needs are one class (class.go, pins.go; package
//     podclass has the labels that matter). For each class the Filter plugins look at all nodes once
//     (filters.go), or, after a similar gang, at the nodes that have changed (pass.go). The result is
//     the input of package planner, in amounts of resources (resources.go) and devices (devices.go).
//     Room for nominated Pods that the gang does not outrank is not free (nominated.go). Nodes that
//     are in use for as long as the gang runs come first (lasting.go).
//  4. verify (verify.go): the planner's plans are tried one after the other, until one holds. The
//     plugins confirm the node of each member, with the earlier members assumed in the snapshot.
//     Members that prefer to be near others or away from others are first placed one by one in the
//     plan's domains (prefer.go). If there is no time for all plans, the gang's next cycle continues
//     with the others (tried.go).
//     If no plan holds, members are placed one by one (onebyone.go), as kube-scheduler places Pods
//     without a group.
//  5. If the gang has no place: explain (explain.go) gives the reason in a sentence, and needOf
//     (need.go) in numbers, so that the queue can ignore events that can't help.
//  6. seek (seek.go), if the gang may preempt others or is the first that waits. pool.go gathers the
//     Pods that may be evicted or awaited; trial.go searches for the fewest of them, with package
//     victims, in a snapshot without these Pods; steady.go assigns members to the nodes found.
//     Reservations in time are in seek.go, too: shadow.go finds how many Pods have to end, and
//     bypacking.go on which nodes.
//
// A cycle that reaches its deadline is given up (overdue.go).
package place
