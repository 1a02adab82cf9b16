// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

// uidLength is how many digits of a job's UID are in the names of Pods and Services of
// v1alpha2. All of it would leave 17 characters for the name of the job.
const uidLength = 8
