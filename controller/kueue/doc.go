// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue integrates Frameworks with Kueue: a Framework waits in a queue of Kueue, ends its attempt when Kueue
// gives its quota to others, and waits again. For each Framework with the label kueue.x-k8s.io/queue-name the
// controller keeps a Workload, the object on which Kueue decides:
//
//	there is no Workload, or not the right one     create it, delete it
//	there can't be one                             the Framework gets an annotation that says why
//	Kueue has admitted the Workload                the Framework gets the annotation for that
//	and its Pods run, or do not any more           the Workload's condition PodsReady is set
//	another gang has preempted the Framework       the Workload is evicted, as Kueue would do it
//	Kueue has evicted the Workload, or it is gone  the Framework loses the annotation
//	and no attempt of the Framework exists         the Workload returns its quota, and is in the queue
//	                                               again
//	the Framework is Completed                     the Workload has finished
//
// Where Kueue gates Pods as jobs of their own, the controller removes the gates from Pods of an admitted Framework
// (pods.go).
//
// Package lifecycle sees only the annotations: an attempt begins only while the Framework has the annotation of an
// admission, and ends when the annotation is removed.
//
// A pure function decides what to do (decide.go). The shell (controller.go) does one write for a Framework at a time,
// and calls the function again.
package kueue
