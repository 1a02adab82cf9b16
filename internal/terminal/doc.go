// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal writes for people who read in a terminal: tables, colours, and texts of
// others made harmless. It is pure: it writes strings, and is told the time.
package terminal
