// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place seeks a place for a gang: what a gang is and what the cluster is go in, what
// is to be done comes out.
//
// # Contract
//
// Place takes a Gang and a Cluster (view.go) and returns an Outcome (outcome.go). The
// Outcome is data. It names members and their nodes, or says why there are none; whom to
// evict for the gang; what room to keep for it; and when to try again. The caller does all
// of that, and may leave it. Place itself binds, evicts, keeps and tells nothing.
//
// Two things are changed while it runs, because plugins look at nothing else:
//
//   - the snapshot, in which members and reservations are assumed, and from which Pods are taken
//     that might end. It is as before when Place returns.
//   - what Reserve plugins remember. Volumes and devices are set aside there, and a member
//     can be verified only if those before it have theirs. Place undoes all of it but for
//     the Placements of the Outcome: these stay set aside, and whoever does not assume them
//     undoes that (kube.UndoReserve). What is set aside is written to the API server when a
//     member is bound, and not before.
//
// Passes (pass.go) are remembered from one gang to the next. They save time. Which of the
// nodes that suit a gang as well are taken may depend on them, and no more.
//
// It runs on the scheduling goroutine, as one turn of the scheduler, and not beside another.
//
// # Algorithm
//
//  1. admit (place.go): the PreEnqueue plugins say which members may be scheduled.
//  2. respect (ahead.go): the reservations of others that the gang has to leave alone are put into
//     the snapshot.
//  3. survey (world.go): members that need the same are one class (class.go, pins.go). For
//     each (package podclass has which labels tell them apart) the Filter plugins look at all nodes once (filters.go), or, after a gang that is
//     alike, at those that have changed (pass.go). The result is the input of package
//     planner, in amounts of resources (resources.go) and devices (devices.go). What Pods take that are nominated for
//     a node is not free, if the gang does not outrank them (nominated.go).
//  4. verify (verify.go): the planner's plans, one after the other, until one holds. Member
//     by member the plugins confirm the node, with the members before it assumed there.
//     Where members prefer to be near others or away from them, they are placed one by one in the
//     plan's domains first (prefer.go). Plans that a cycle has no time for are those of the next (tried.go).
//     If no plan holds, one by one (onebyone.go): as kube-scheduler places Pods without a group.
//  5. If none holds: explain (explain.go), in a sentence, and needOf (need.go) in numbers, so
//     that events which can't help are told from those that may.
//  6. seek (seek.go): the gang may outrank others, or be the first that waits. pool.go has the work whose
//     room it may have; trial.go the search for the least of that work, with package victims, in a
//     snapshot without it; steady.go which member goes to which of the nodes then.
//     Reservations in time are in seek.go, too.
//
// A cycle that reaches its deadline is given up (overdue.go).
package place
