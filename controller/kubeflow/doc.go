// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflow decides what happens to a training job of Kubeflow of any kind: TFJob of both versions, PyTorchJob,
// XGBoostJob, PaddleJob, JAXJob, and MPIJob. The package is pure, like package lifecycle, which does the
// same for Frameworks: there is no client, no clock and no randomness. The input is a Snapshot, and the output is a
// Plan. Package kubeflowjobs lets the engine act on the plans.
//
// A kind is a row of data (kinds.go). A TFJob of v1alpha2 is a separate kind: it has other names, arguments and phases,
// and no runPolicy.
//
// # Persist before act
//
// All memory of a job is in the status. What has to be persisted, and which actions wait for that:
//
//	P1  the number of the start         making anything; the next start's Pods
//	P2  a suspension                    deleting Pods, Services, gang and autoscaler
//	P3  an end                          deleting what the cleanPodPolicy says, and the job
//	P4  the count of a restart, with    deleting the Pod
//	    its index in restartingIndexes
//	P5  the index gone from there       making the next Pod
//
// So a Pod of an index in restartingIndexes has been counted and will be deleted; or there is no Pod. If a controller
// crashes between any two writes, the next controller continues correctly from the status, and counts no restart twice.
//
// # Which Pod is which
//
// Names are fixed, so there is at most one Pod of an index. A job starts once, and again with each resume; an
// annotation of each object has the number of its start. The controller deletes Pods of an earlier start, and creates
// nothing until they are gone. A Pod of the present start with the right name belongs to the job, even if another
// controller created it. The controller remembers no UIDs.
//
// # What is on record
//
// completedIndexes and failedIndexes record the indexes that have ended. An index stays there, even if its Pod is
// deleted, until the index is scaled away or the job is suspended. Pods have no finalizer. So if a Pod ends and is
// deleted before a controller has seen its end, it counts as deleted, and is created again; restarts of its containers
// are not counted.
//
// # Time
//
// Deadline, time to live and the reconciler of v1alpha2 are computed from times in the status. Each decision schedules
// the next one, so no limit depends on an event.
//
// # Where to look
//
//	kinds.go       what kinds are like
//	validate.go    what is wrong with a spec
//	reading.go     what a spec means
//	ownership.go   which jobs are ours
//	members.go     which Pods and Services belong where
//	record.go      what is remembered of indexes
//	podends.go     what becomes of a Pod that ends or goes
//	outcome.go     when a job of v1 runs, succeeds and fails
//	designed.go    the same of v1alpha2
//	conditions.go  in which order conditions stand
//	reconciler.go  when a job of v1alpha2 is checked without an event
//	kept.go        what another project's CRD keeps of a status
//	limits.go      deadline, backoffLimit, time to live
//	suspension.go, cleanup.go, force.go
//	               when objects go
//	waiting.go     warnings about objects that don't go
//	mpi.go, mpi_files.go
//	               how MPIJobs differ, and the files that their Pods share
//	gang.go, elastic.go
//	               the PodGroup and the autoscaler
//	services.go    by which Services Pods are reached
//	actions.go     what is to be done
//	events.go      events for users
//	builder.go, env_*.go
//	               what Pods and Services look like
package kubeflow
