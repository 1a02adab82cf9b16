// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal writes for people at a terminal: tables, colours, and texts of others made harmless. The package
// is pure: its functions return strings, and get the time as argument.
package terminal
