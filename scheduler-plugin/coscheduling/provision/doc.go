// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision has the arithmetic of members that are still to come.
//
// Some groups start with a few members, and these create the others: the driver of a Spark application creates its
// executors, the leader of a LeaderWorkerSet waits for its workers. Such a group has a small minimum and announces the
// resources of all members (minResources).
//
//   - clean.go and amounts.go convert the announcement to Amounts of what nodes have.
//   - virtual.go cuts what is announced beyond the existing members into virtual members, modelled on the largest
//     existing one, since the real ones are not known yet.
//
// The package is pure. Package place plans virtual members, and package room records the room that is reserved for
// them.
package provision
