// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports what is known of gangs: in the conditions of PodGroups, or the status of groups of other APIs;
// in the condition PodScheduled of waiting Pods; in events and in metrics.
//
// Package news decides what to report. The Reporter (reporter.go) is called whenever something about a gang changes. It
// asks for the state of the gang through the interface Gangs, and writes. Metrics (metrics.go) are counted where things
// happen.
package status
