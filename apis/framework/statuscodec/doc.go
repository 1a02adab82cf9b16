// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statuscodec stores the status of a Framework and reads it back. It is
// pure, and shared by the controller and by FrameworkBarrier.
//
// Large task role statuses are stored gzipped, as FrameworkController stores them.
// What is read back is checked: a status was checked by the API server's schema, or
// written by the controller, but neither is certain. A Framework may be older than
// the schema, and whoever may write a status may write anything. A status that would
// make no sense to a decision is refused here, so that decisions rely on its shape.
package statuscodec
