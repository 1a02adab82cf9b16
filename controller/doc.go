// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller puts lockstep-controller together: the clients, the engine, and one core for each kind of job
// that the configuration switches on. A core is the part of the controller for one kind of job.
//
// Package engine has what all cores share. The decisions of a core are in a pure package, and a second package
// connects it to the engine:
//
//	kind of job               decisions    connection to the engine
//	Framework                 lifecycle    frameworks
//	Volcano Job               volcano      volcanojobs
//	training job of Kubeflow  kubeflow     kubeflowjobs
package controller
