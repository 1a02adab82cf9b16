// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs Frameworks. It is the shell around package lifecycle,
// which decides everything: one sync of a Framework gathers a Snapshot from the
// caches (gather.go), has it decided, writes the status if the Plan asks for it
// (status.go), runs the Plan's actions (apply.go), and starts over with what came
// of them until there is nothing to do without waiting for the API server
// (pass.go).
//
// What the controller itself has done is never decided upon from caches that are
// behind: the last status is kept in memory and overrides the cached one, and so
// does a PodGroup that was just written (memory.go). ConfigMaps and Pods that
// were created are known by UID, and waited for.
//
// Nothing is shared between Frameworks but the caches and the queue, and a key is
// synced by one worker at a time.
package controller
