// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads from the API server what kubectl lockstep and the web page show of jobs. A Reader has the
// rights of the user. Results name what the user may not read; nothing is guessed.
package reading
