// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package implicit creates PodGroups for Jobs, JobSets and LeaderWorkerSets, whose controllers create none, in
// namespaces with the label scheduling.lockstep.dev/gang-by-owner.
//
// These controllers label Pods. The labels determine which Pods belong together, and the name of their PodGroup
// (package podgroup, ImplicitOf). So Pods wait in the scheduler for their PodGroup before it exists. For each group of
// Pods:
//
//	Pods of it live, and their owner is seen         create the PodGroup, owned by the owner
//	the owner needs another number of Pods           change spec.minMember
//	the owner is another object of the same name     delete the PodGroup; then it is created for that owner
//	no Pod of it is left                             delete the PodGroup
//	the owner is gone                                nothing: the garbage collector deletes the PodGroup
//
// Whether the Pods are placed together is decided when the PodGroup is created, and stays: spec.schedulingPolicy is
// immutable. A JobSet that starts its Jobs in an order has a PodGroup with the policy GangPerJob, and a PodGroup for
// each Job. A LeaderWorkerSet that starts its workers after their leader has PodGroups with the policy Basic.
//
// A pure function decides what to do from the PodGroup, the Pods and the owner (decide.go). The shell (controller.go)
// does one write for a PodGroup at a time, and calls the function again. All state is in the API server.
package implicit
