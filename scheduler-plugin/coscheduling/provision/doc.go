// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision has the arithmetic of members that are still to come.
//
// Some groups start with a few members, and these make the others: the driver of a Spark application makes its executors, the
// leader of a LeaderWorkerSet waits for its workers. Such a group asks for few members and announces the resources of all
// (minResources).
//
//   - What is announced is cleaned to Amounts of what nodes have (clean.go, amounts.go).
//   - Nobody knows yet what the members look like that are to come. So what is announced beyond the members that there are is
//     cut into virtual members, by the largest one that there is (virtual.go).
//
// The package is pure. Package place plans virtual members, and package room records the room that is reserved for them.
package provision
