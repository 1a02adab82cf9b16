// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube is the only room of the plugin that touches kube-scheduler's inside.
//
// # Contract
//
// Of k8s.io/kubernetes, the other packages import pkg/scheduler/framework alone, which
// with k8s.io/kube-scheduler is what kube-scheduler offers to plugins. All else is here and
// in the packages below, behind functions and small interfaces that speak of Pods, nodes
// and names. imports_test.go holds everybody to it. So the next minor of Kubernetes touches
// this tree. The package knows nothing of gangs: what it has to ask about them, it asks by
// an interface (Gangs).
//
// Each thing that leans on how kube-scheduler works has a test that runs kube-scheduler
// itself, or compares its source, and fails when that changes:
//
//	what is used                                             where                     held by
//	the private scheduling and binding cycle                 cycle.go, binding.go      upstream_test.go
//	NextEntity                                               scheduler.go              scheduler_test.go
//	the queue in front of its own, a Pod of ours in that     queue.go, wakeup.go       scheduler_test.go, queue_test.go,
//	                                                                                   wakeup_test.go
//	a cache in front of its own, so that no change of a
//	Pod ends the program                                     cache.go                  recreated_test.go of the plugin
//	by which ways a Pod comes to be nominated                nominations.go            nominations_test.go
//	that a nomination which ends is told like a Pod's end    queue.go                  queue_test.go
//	the condition and nomination of a Pod that waits         condition.go              condition_test.go
//	one snapshot for all profiles, trials in it              scheduler.go, snapshot.go scheduler_test.go
//	the executor's PreemptPod, IsPodRunningPreemption        preemptors.go             preemption_test.go
//	DefaultPreemption's IsEligiblePod, MoreImportantVictim,
//	Evaluator                                                preemption.go             preemption_test.go
//	how a victim is marked and deleted                       evict.go, onlypod.go      evict_test.go
//	DynamicResources' Unreserve, in memory only              undo.go                   undo_test.go
//	DynamicResources' PostFilter, its index of Pods          claims.go                 upstream_test.go
//	in which order PodDisruptionBudgets are spent            budgets.go                budgets_test.go
//	how it makes its informers, which Pods they leave out    pods.go                   pods_test.go, upstream_test.go
//	multiPoint and preEnqueue of a profile                   profile.go                profile_test.go
//	DynamicResources' PreFilter to Reserve, off the cycle    sharing.go                devices_test.go of the plugin
//	app.Setup and how its command runs                       program/setup.go          program/setup_test.go
//	names of its flags                                       program/program.go        program/program_test.go
//	names of plugins, feature gates, metrics                 names.go, gates.go,
//	                                                         metrics.go                the compiler
//
// # The next minor of Kubernetes
//
//  1. Raise the versions of k8s.io/* in go.mod together, and build. What does not compile
//     is here, or in the public interfaces of plugins.
//  2. Test this package and those below. For each checksum that differs, read what
//     changed upstream between the two versions, change the mirror or the copy
//     likewise, and only then its version and its checksum.
//  3. If the scheduling queue has new methods, a test names them: the queue in front must
//     know of those that take a Pod or an event, or members get past it.
//  4. Look for new extension points in the cycles, and for new arguments of DefaultPreemption
//     and of scheduler.New: nothing fails where one is left out.
//  5. Look in names.go's users for new Filter plugins whose verdict does not depend on
//     labels, and in package served for new informers that older API servers can't feed.
//  6. Look at the feature gate GenericWorkload: with it on, kube-scheduler's own code takes Pods that
//     name a PodGroup of Kubernetes, and the plugin leaves them to it. If it can't be switched off
//     any more, hide schedulingGroup from that code.
//  7. Run everything, and the benchmarks against the new kube-scheduler.
package kube
