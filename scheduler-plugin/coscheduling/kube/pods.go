// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

// EndedPods is the field selector of the Pods that kube-scheduler's informer leaves out:
// those that have succeeded or failed. Each Pod is selected by one of the two. Selectors
// of fields know no "or".
const EndedPods = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
