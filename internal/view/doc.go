// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view makes from a Framework, its PodGroup, its Pods and its events what a person wants to see: a tree of an
// attempt, its roles and its tasks, and a row of a table for any job that Lockstep runs. The package is pure.
//
// Terminals and web pages are others' business. Texts of tenants, such as messages of containers, are unchanged: the
// caller has to make them harmless before showing them.
//
// A role of more than MaxTaskRows tasks shows tasks that are alike as one row, so that a
// tree has a bounded number of rows however many tasks there are.
package view
