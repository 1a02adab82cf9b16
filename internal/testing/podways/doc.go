// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podways lists the ways in which Kubernetes 1.34 to 1.37 ends a Pod, and what each kind of job makes of it.
// The tests of all kinds of jobs use the list, random lives draw from it, and hack/endsref writes the tables in the
// documents from it.
package podways
