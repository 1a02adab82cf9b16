// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision says what room a group is to have kept for members that are still to come.
//
// Some groups start with a few members, and these make the others: the driver of a Spark
// application makes its executors, the leader of a LeaderWorkerSet waits for its workers. Such a
// group asks for few members and for the resources of all (minResources). If two of them start
// where there is room for one and a half, neither gets its others.
//
//   - What is asked for is cleaned to Amounts of what nodes have (clean.go).
//   - The rest is what is asked for without what the members take that have a place
//     (amounts.go).
//   - Nobody knows yet what the members look like for which the rest is kept. So the rest is cut
//     into virtual members, by the largest member that there is (virtual.go).
//   - The room is kept for a time, which runs anew with each member that comes, and has an end all
//     the same (lifetime.go).
//
// The package is pure. That room is kept is the business of package room, where it is sought that
// of package place.
package provision
