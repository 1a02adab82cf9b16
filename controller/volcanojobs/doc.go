// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volcanojobs has the engine run Volcano Jobs. It is the adapter between package
// engine, which does everything that is the same for all kinds of owners, and package
// volcano, which decides on Jobs and knows no client. Package frameworks is the same for
// Frameworks, and its files have the same names. What adapters have in common is in package
// adapter.
//
//	core.go       how Jobs and their statuses are read, and what is written for them
//	ours.go       which Jobs are touched at all
//	informers.go  what is watched, and what of it is kept
//	commands.go   how Commands are watched, each decoded by itself
//	served.go     what happens while the API server does not serve Volcano's kinds
//	snapshot.go   the engine's view of a Job, made a volcano.Snapshot
package volcanojobs
