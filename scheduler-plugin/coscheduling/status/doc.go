// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status tells what is known of gangs: by the conditions of their PodGroups, or the
// status of those of other dialects, by the condition PodScheduled of Pods that wait, by events
// and by metrics.
//
// What is told is decided by package news. The Reporter (reporter.go) does it: it asks
// whoever knows the gangs, by the interface Gangs, and writes. It is asked to report on a
// gang whenever something of it changes. Metrics (metrics.go) are counted where something
// happens.
package status
