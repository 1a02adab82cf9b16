// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads from the API what people are shown of jobs: by kubectl lockstep, and by the web page. A
// Reader reads with the rights of the user. Results name what the user may not read, without guesses.
package reading
