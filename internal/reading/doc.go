// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads from the API what people are shown of jobs: by kubectl lockstep, and by the
// web page. A Reader has the rights of the user for whom it reads. What he may not read is said in
// what it returns, and is not guessed.
package reading
