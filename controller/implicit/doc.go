// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package implicit makes PodGroups for Jobs, JobSets and LeaderWorkerSets, as their tools make none, in namespaces
// with the label scheduling.lockstep.dev/gang-by-owner.
//
// The labels that the tools write into Pods say which Pods belong together, and how their PodGroup is called (package
// podgroup, ImplicitOf). So Pods wait in the scheduler for their PodGroup before it exists. For each group of Pods:
//
//	Pods of it live, and their owner is seen         create the PodGroup, owned by the owner
//	the owner asks for another number of Pods        change spec.minMember
//	the owner is another object of the same name     delete the PodGroup; then it is created for that owner
//	no Pod of it is left                             delete the PodGroup
//	the owner is gone                                nothing: the garbage collector deletes the PodGroup
//
// Whether the Pods are placed together is decided when the PodGroup is created, and stays: spec.schedulingPolicy is
// immutable. A JobSet that starts its Jobs in an order has a PodGroup with the policy GangPerJob, and a PodGroup for
// each Job. A LeaderWorkerSet that starts its workers after their leader has PodGroups with the policy Basic.
//
// What to do is decided by a pure function (decide.go) from the PodGroup, the Pods and the owner. The shell
// (controller.go) does it, one write for a PodGroup at a time, and decides anew. Nothing is remembered but what the API
// server holds.
package implicit
