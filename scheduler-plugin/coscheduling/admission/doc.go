// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission decides which groups are let in: some tools create the Pods of a group only once
// its status says so. It is for configurations in which a group has to wait for room.
//
// The measure is a sum over the cluster: what a group asks for, without what its Pods take that have
// a place, is to fit into what is neither used, nor kept for others, nor counted for groups that were
// let in a short while ago. Whether it fits node by node shows when its Pods are planned.
//
//   - The group that is first in line is looked at first. One that does not fit keeps nobody else out.
//   - A group that was let in stays in. What it asks for counts for a minute. In this time its Pods
//     come, and take that or wait for it. A group whose Pods never come costs others no more than that.
//
// The package is pure.
package admission
