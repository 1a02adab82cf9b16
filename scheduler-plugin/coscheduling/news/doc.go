// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package news decides what is reported about a gang: in its conditions, and to its waiting Pods. The package is pure:
// it has no scheduler, client or clock. Everything follows from a value, a Gang, and the time:
//
//	what the conditions of a PodGroup say       conditions.go
//	why missing members don't come              hints.go
//	the condition and node of a waiting Pod     marks.go
//	which events are recorded once              warnings.go
//	what the status of other APIs' groups says  status.go
//
// Package gangs provides the Gang, and package status writes the reports.
package news
