// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frameworks makes the engine run Frameworks. It connects package engine, which does what is the same for all
// kinds of owners, with package lifecycle, which decides on Frameworks and has no client.
//
//	core.go       how Frameworks and their statuses are read
//	informers.go  what is watched, and what of it is kept
//	snapshot.go   the engine's view of a Framework, converted to a lifecycle.Snapshot
//	decide.go     a decision, with the further facts that the engine needs
//	status.go     how a status is encoded, and shortened
//	history.go    the lines of the history in the log
package frameworks
