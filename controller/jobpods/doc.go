// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobpods has what the cores share that run jobs with fixed names of Pods: templates, how Pods ended, sets of
// indexes as statuses remember them, names of gangs, and actions on objects. It is pure: it knows no client and no
// clock.
package jobpods
