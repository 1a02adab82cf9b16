// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal formats output for people at a terminal: tables, colours, and untrusted texts made safe. The package
// is pure: functions return strings, and get the time as an argument.
package terminal
