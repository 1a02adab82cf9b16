// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue has Frameworks wait in queues of Kueue, give way when their quota goes to others,
// and wait again. It does for Frameworks what Kueue's integrations do for the kinds that Kueue
// knows. For each Framework with the label kueue.x-k8s.io/queue-name it keeps a Workload, Kueue's
// object, by which Kueue decides on the Framework:
//
//	there is no Workload, or not the right one     create it, delete it
//	Kueue has admitted the Workload                the Framework gets the annotation of that
//	Kueue has evicted it, or it is gone            the Framework loses the annotation
//	and no attempt of the Framework is there       the Workload gives its quota back, and is in
//	                                               the queue again
//	the Framework is Completed                     the Workload has finished
//
// The annotation is all that package lifecycle knows of it: an attempt begins only while it is
// there, and ends when it goes.
//
// What to do is decided by a pure function (decide.go). The shell (controller.go) does it, one
// write for a Framework at a time, and decides anew.
package kueue
