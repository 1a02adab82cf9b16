// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroup says what a PodGroup is to be and what state it is in. It is
// pure, values in and values out, and shared by the Framework controller, the
// PodGroup controller and the scheduler's plugin, so that all three mean the
// same by a gang, a member and a quorum:
//
//   - IsGang and DesiredSpec: whether a Framework's attempt has a PodGroup, and
//     its spec for the tasks that are left.
//   - IsMember: whether a Pod is a member of the group that its labels name.
//   - ImplicitOf: the group that lockstep-controller makes for a Job, a JobSet or a
//     LeaderWorkerSet, by the labels of a Pod of it.
//   - Count: where the members of a group are.
//   - Minimum, Holds: whether members are a quorum.
//   - NextPhase: the phase that follows from the present one and the counts.
//   - GroupOf, RoleOf: the group and the role that a Pod's labels name.
//   - Condition: a group's condition of a type.
//
// A Pod is a member of the group that its label scheduling.lockstep.dev/pod-group names in its own namespace; in the
// group of a Framework's attempt, only if the attempt's ConfigMap is its controller; and in a group with
// spec.memberLabels, if it has these labels. A member that is being deleted gives its place up: a Pod stays a member
// until it is gone, but counts as neither scheduled nor running, because its replacement has to be scheduled again.
// So a preempted group, or a group that lost a node, shows that when the deletion begins, not when a kubelet that may
// be dead confirms its end.
package podgroup
