// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif answers why a gang waits, where the gang would go, and which gang is next in the queue. The package is
// pure: the input is a Snapshot, which is never changed, and the output one of the answers of package answers.
//
// Two kinds of callers have objects of the cluster: the scheduler, which also knows back-offs and reservations, and a
// command line that has listed Nodes, Pods and PodGroups. Both get the same answer from the same knowledge. The answer
// names what the Snapshot lacks.
//
// # How it is answered
//
// Simulate builds the input of package planner from the Snapshot (world.go, members.go), and asks the same planner that
// places gangs. Besides resources, Simulate checks the conditions that depend on one node alone: taints, node selectors
// and affinity, cordons and host ports. Of conditions between Pods it checks those that the planner supports: members
// that keep each other off a node, and members that must all be in one domain. The scheduler verifies each member with
// all plugins of its profile; a condition of the gang that Simulate can't check is listed in the answer's Unknown. If
// there is no room, package victims says what would be evicted (preempt.go).
//
// Why looks for reasons in the order of their constants (why.go). Order returns the queue (queue.go).
//
// A question may change the Snapshot (change.go): nodes are added, gangs are removed, or a gang is added.
package whatif
