// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status tells what is known of gangs: by the conditions of their PodGroups, by
// the condition PodScheduled of Pods that wait, by events and by metrics.
//
// What is told is decided by functions of a value, a Gang, and of the time. They know
// no scheduler, client or clock:
//
//	what the conditions of a PodGroup say       conditions.go
//	which Pod that waits is told what           marks.go
//	for which node it is nominated              nominations.go
//	when a PriorityClass does not count         capped.go
//
// The Reporter (reporter.go) does it: it asks whoever knows the gangs, by the interface
// Gangs, and writes. It is asked to report on a gang whenever something of it changes. Metrics
// (metrics.go) are counted where something happens.
package status
