// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view builds what users see of a job from a Framework, its PodGroup, its Pods and its events: a tree of an
// attempt with its roles and tasks, and a row of a table for any job that Lockstep runs. The package is pure.
//
// Other packages draw these on terminals and web pages. Texts of tenants, such as messages of containers, are
// unchanged, so the caller has to remove control characters before showing them.
//
// If a role has more than MaxTaskRows tasks, equal tasks share a row, so a tree has a bounded number of rows.
package view
