// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobpods has what cores share if their jobs' Pods have fixed names: Pod templates, how Pods ended, sets of
// indexes in a status, names of PodGroups, and actions on objects. The package is pure: it has no client and no clock.
package jobpods
