// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif answers why a gang waits, where it would go, and who is next in the queue. It is
// pure: a Snapshot goes in, which nobody changes, and one of the answers of package answers
// comes out.
//
// It is for whoever has objects of the cluster: the scheduler, which knows back-offs and room
// that is held as well, and a command line, which has listed Nodes, Pods and PodGroups. Both get
// the same answer where both know the same. What a Snapshot lacks is said in the answer.
//
// # How it is answered
//
// Simulate builds the input of package planner from the Snapshot (world.go, members.go), and
// asks the planner that places gangs. What is checked besides resources are the conditions that
// depend on one node alone: taints, node selectors and affinity, cordons and host ports. Of
// conditions between Pods it knows those that the planner has words for: members that keep each
// other off a node, and members that must all be in one domain. The scheduler verifies each
// member with all plugins of its profile; what was not asked here is in Unknown, and only if the
// gang has it. If there is no room, package victims says who would be evicted (preempt.go).
//
// Why looks for reasons in the order of their constants (why.go). Order is the queue (queue.go).
//
// Two changes can be made to a Snapshot before it is asked (change.go): nodes that are not there
// are added, and gangs that are there are taken away.
package whatif
