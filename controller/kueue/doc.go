// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue has Frameworks wait in queues of Kueue, give way when their quota goes to others,
// and wait again. It does for Frameworks what Kueue's integrations do for the kinds that Kueue
// knows. For each Framework with the label kueue.x-k8s.io/queue-name it keeps a Workload, Kueue's
// object, by which Kueue decides on the Framework:
//
//	there is no Workload, or not the right one     create it, delete it
//	there can't be one                             the Framework gets an annotation that says why
//	Kueue has admitted the Workload                the Framework gets the annotation of that
//	and its Pods run, or do not any more           the Workload says so: PodsReady
//	another gang has preempted the Framework       the Workload is evicted, as Kueue would do it
//	Kueue has evicted it, or it is gone            the Framework loses the annotation
//	and no attempt of the Framework is there       the Workload gives its quota back, and is in
//	                                               the queue again
//	the Framework is Completed                     the Workload has finished
//
// Where Kueue gates Pods as jobs of their own, the controller removes the gates from Pods of an admitted Framework
// (pods.go).
//
// The annotations are all that package lifecycle knows of it: an attempt begins only while that of an admission is
// there, and ends when it goes.
//
// What to do is decided by a pure function (decide.go). The shell (controller.go) does it, one
// write for a Framework at a time, and decides anew.
package kueue
