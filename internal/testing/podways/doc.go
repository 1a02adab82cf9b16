// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podways lists the ways in which Kubernetes 1.34 to 1.37 ends a Pod, and what every kind of job makes of
// each. Tests of all kinds of jobs use it, random lives draw from it, and the tables in the documents are written
// from it (hack/endsref).
package podways
