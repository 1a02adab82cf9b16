// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflowjobs has the engine run training jobs of Kubeflow: TFJobs of both versions,
// and PyTorchJobs. It is the adapter between package engine, which does everything that is the
// same for all kinds of owners, and package kubeflow, which decides on jobs of all these kinds
// and knows no client.
//
// Each kind of jobs is one core of the engine, and all of them are this Core with another row of data (kinds.go).
// One set of informers watches the objects of all jobs, selected by a label that has the job's name. The controller of an
// object shows to which job it belongs.
//
//	kinds.go      the kinds of jobs
//	core.go       how jobs and their statuses are read, and what is written for them
//	ours.go       which jobs are touched at all
//	informers.go  what is watched, and what of it is kept
//	snapshot.go   the engine's view of a job, made a kubeflow.Snapshot
package kubeflowjobs
