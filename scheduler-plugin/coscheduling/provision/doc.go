// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision has the arithmetic of members that are still to come.
//
// Some gangs start with a few members, which create the others: the driver of a Spark application creates its
// executors, and the leader of a LeaderWorkerSet waits for its workers. The PodGroup of such a gang has a small
// minimum, and states the resources of all members (minResources).
//
//   - clean.go and amounts.go convert the stated resources to Amounts of what nodes have.
//   - virtual.go divides what is stated beyond the existing members into virtual members. They are modelled on the
//     largest existing member, because the real ones are not known yet.
//
// The package is pure. Package place plans virtual members, and package room records the room that is reserved for
// them.
package provision
