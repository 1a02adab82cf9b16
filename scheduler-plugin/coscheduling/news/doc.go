// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package news decides what is told of a gang: what its conditions say, and what is said to
// its Pods that wait. It is pure: it knows no scheduler, client or clock. All that is told
// follows from a value, a Gang, and the time:
//
//	what the conditions of a PodGroup say       conditions.go
//	why members that are missing don't come     hints.go
//	which Pod that waits is told what           marks.go
//	for which node it is nominated              nominations.go
//	when a PriorityClass does not count         capped.go
//	what the status of other groups says        status.go
//
// Package gangs knows the Gang, and package status writes what is told.
package news
