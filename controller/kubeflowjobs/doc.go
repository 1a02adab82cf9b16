// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflowjobs makes the engine run training jobs of Kubeflow. It connects package engine, which does what is
// the same for all kinds of owners, with package kubeflow, which decides on training jobs and has no client.
//
// Each kind of job is a separate core of the engine: the same type Core with another row of data (kinds.go). One set
// of informers watches the objects of all jobs, selected by a label with the job's name. The controller reference of
// an object shows to which job it belongs.
//
//	kinds.go      the kinds of jobs
//	core.go       how jobs and their statuses are read, and what is written for them
//	ours.go       which jobs are touched at all
//	informers.go  what is watched, and what of it is kept
//	snapshot.go   the engine's view of a job, made a kubeflow.Snapshot
package kubeflowjobs
