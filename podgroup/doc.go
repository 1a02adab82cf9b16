// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroup computes the spec and the state of PodGroups. It is pure, and is used by the Framework controller,
// the PodGroup controller and the scheduler's plugin, so that all three agree on what a gang, a member and a quorum
// are:
//
//   - IsGang and DesiredSpec: whether a Framework's attempt has a PodGroup, and
//     its spec for the tasks that are left.
//   - IsMember: whether a Pod is a member of the group that its labels name.
//   - ImplicitOf: the group that lockstep-controller creates for a Job, a JobSet or a
//     LeaderWorkerSet, by the labels of one of its Pods.
//   - Count: where the members of a group are.
//   - Minimum, Holds: whether members are a quorum.
//   - NextPhase: the phase that follows from the present one and the counts.
//   - GroupOf, RoleOf: the group and the role that a Pod's labels name.
//   - Condition: a group's condition of a type.
//
// A Pod is a member of the group that its label scheduling.lockstep.dev/pod-group names in its own namespace; in the
// group of a Framework's attempt, only if the attempt's ConfigMap is its controller; and in a group with
// spec.memberLabels, if it has these labels. A Pod that is being
// deleted stays a member until it is gone, but counts as neither scheduled nor running, because its replacement has to
// be scheduled. So the status shows a preemption or a lost node when the deletion begins, and does not wait for a
// kubelet that may be dead.
package podgroup
