// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frameworks has the engine run Frameworks. The package is the adapter between package engine, which does
// everything common to all kinds of owners, and package lifecycle, which decides on Frameworks and knows no client.
//
//	core.go       how Frameworks and their statuses are read
//	informers.go  what is watched, and what of it is kept
//	snapshot.go   the engine's view of a Framework, made a lifecycle.Snapshot
//	decide.go     a decision, with what the engine wants to know besides
//	status.go     how a status is encoded, and shortened
//	history.go    the lines of the history in the log
package frameworks
