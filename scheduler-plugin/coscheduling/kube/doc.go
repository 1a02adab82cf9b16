// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube has all code of the plugin that uses internals of kube-scheduler.
//
// # Contract
//
// Of k8s.io/kubernetes, the other packages import only pkg/scheduler/framework, which together with
// k8s.io/kube-scheduler is what kube-scheduler offers to plugins. All other uses are in this package
// and the packages below, behind functions and small interfaces about Pods, nodes and names;
// imports_test.go enforces this. So the next minor of Kubernetes affects only this tree. The package
// knows nothing of gangs, and asks about gangs through an interface (Gangs).
//
// Each dependency on how kube-scheduler works has a test that runs kube-scheduler itself, or compares
// its source, and fails when that changes:
//
//	what is used                                             where                     held by
//	the private scheduling and binding cycle                 cycle.go, binding.go      upstream_test.go
//	NextEntity                                               scheduler.go              scheduler_test.go
//	a queue in front of its own, placeholder Pods in it      queue.go, wakeup.go       scheduler_test.go, queue_test.go,
//	                                                                                   wakeup_test.go
//	a cache in front of its own, so that no change of a
//	Pod ends the program                                     cache.go                  recreated_test.go of the plugin
//	the ways by which a Pod becomes nominated                nominations.go            nominations_test.go
//	that the end of a nomination looks like a Pod's end      queue.go                  queue_test.go
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
//  1. Raise the versions of k8s.io/* in go.mod together, and build. What does not compile is in this
//     tree, or in the public interfaces of plugins.
//  2. Test this package and the packages below. For each checksum that differs, read what changed
//     upstream between the two versions, change the mirror or the copy likewise, and then its
//     version and its checksum.
//  3. A test lists new methods of the scheduling queue. The queue in front must handle methods that
//     take a Pod or an event, or members get past the plugin.
//  4. Look for new extension points in the cycles, and for new arguments of DefaultPreemption and of
//     scheduler.New: no test fails if one is ignored.
//  5. Look in the users of names.go for new Filter plugins whose answer does not depend on labels,
//     and in package served for new informers of resources that older API servers lack.
//  6. Look at the feature gate GenericWorkload. With the gate on, kube-scheduler's own code takes Pods
//     that name a PodGroup of Kubernetes, and the plugin leaves these Pods alone. If the gate can't be
//     turned off any more, hide schedulingGroup from that code.
//  7. Run everything, and the benchmarks against the new kube-scheduler.
package kube
