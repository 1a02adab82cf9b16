// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller puts lockstep-controller together: the clients, the engine, and the
// cores that the configuration switches on.
//
// Package engine has all that is the same for every kind of owner. Package lifecycle
// decides on Frameworks, and package frameworks is the adapter between both. Packages volcano
// and volcanojobs are the same for Volcano Jobs, kubeflow and kubeflowjobs for training jobs of
// Kubeflow.
package controller
