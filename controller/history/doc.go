// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history makes the objects of history lines: what the controller logs before it overwrites or deletes
// something. docs/history.md is the contract with readers of the lines. The package is pure; the controller logs.
//
//   - Framework, Task and Pod: what is logged, in the shape of an object of its own.
//   - Encode: the JSON of it, in which the values of secret environment variables
//     are masked.
package history
