// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view makes of a Framework, its PodGroup, its Pods and its events what a person
// wants to see of it: a tree of an attempt, its roles and its tasks, and of any job that
// Lockstep runs a row of a table. It is pure.
//
// It knows neither terminals nor web pages. Texts that tenants have written, such as messages
// of containers, are in it as they were written: who shows them has to make them harmless.
//
// A role of more than MaxTaskRows tasks shows tasks that are alike as one row, so that a
// tree has a bounded number of rows however many tasks there are.
package view
