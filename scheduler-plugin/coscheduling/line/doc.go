// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package line decides which gang is planned next.
package line
