// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs Frameworks. It is the shell around package lifecycle,
// which decides everything: one sync of a Framework gathers a Snapshot from the
// caches (gather.go), has it decided, writes the status if the Plan asks for it
// (status.go), runs the Plan's actions (act.go, execute.go), and starts over with
// what came of them until there is nothing to do without waiting for the API server
// (pass.go).
//
// What the controller itself has done is never decided upon from caches that are
// behind: the last status is kept in memory and overrides the cached one, and so
// does a PodGroup that was just written (memory.go). What has left the caches is
// looked at before it is taken for gone (looks.go).
//
// What fails is tried again for its cause (causes.go), when package pacing says so.
// Nothing is shared between Frameworks but the caches, the budget of requests and the
// queue, in which namespaces take turns (fairqueue.go). A Framework has one sync at a
// time, and a namespace a bounded number of them (turn.go, work.go).
package controller
