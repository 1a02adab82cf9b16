// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports what is known of gangs: in the conditions of PodGroups, or the status of groups of other APIs;
// in the condition PodScheduled of waiting Pods; in events and metrics.
//
// Package news decides on the content. The Reporter (reporter.go) asks for the state of a gang through the interface
// Gangs, and writes. The Reporter is called whenever something about a gang changes. Metrics (metrics.go) are counted
// where things happen.
package status
