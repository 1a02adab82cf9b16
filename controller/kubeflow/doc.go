// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflow decides how a training job of Kubeflow lives, whatever its kind: TFJob of both versions,
// PyTorchJob, XGBoostJob, PaddleJob, JAXJob, and MPIJob. The package is pure, like package lifecycle, which does the
// same for Frameworks: there is no client, no clock and no randomness. The input is a Snapshot, and the output is a
// Plan. Package kubeflowjobs lets the engine act on the plans.
//
// A kind is a row of data (kinds.go), and a TFJob of v1alpha2 is a kind of its own: other
// names, arguments, phases, and no runPolicy.
//
// # Persist before act
//
// The memory of a job is its own status and nothing else. What has to be persisted, and which actions wait for that:
//
//	P1  the number of the start         making anything; the next start's Pods
//	P2  a suspension                    deleting Pods, Services, gang and autoscaler
//	P3  an end                          deleting what the cleanPodPolicy says, and the job
//	P4  the count of a restart, with    deleting the Pod
//	    its index in restartingIndexes
//	P5  the index gone from there       making the next Pod
//
// So an index that is in restartingIndexes has a counted Pod, or none, and never a Pod that is to stay. A controller
// that dies between any two writes leaves a status from which the next one does the right thing, and counts no
// restart twice.
//
// # Which Pod is which
//
// Names are fixed, so there is at most one Pod of an index. An annotation says the start of an object: a job is begun
// once, and once more with each resume. Pods of an earlier start go, and while one is left, nothing is created. A Pod
// of the present start under its name is the Pod, whichever controller made it. Nothing is remembered of UIDs.
//
// # What is on record
//
// Indexes that have ended are in completedIndexes and failedIndexes. Indexes stay there, whatever happens to their
// Pods, until they are scaled away or the job is suspended. Pods have no finalizer: a Pod that ends and is deleted
// before a controller has seen its end counts as deleted, and is created again; such restarts of containers are not
// counted.
//
// # Time
//
// Deadline, time to live and the reconciler of v1alpha2 follow from times in the status, and
// each decision says when the next is due: none is late for want of an event.
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
//	reconciler.go  when a job of v1alpha2 is looked at, though nothing is heard of it
//	kept.go        what a CRD of somebody else's keeps of a status
//	limits.go      deadline, backoffLimit, time to live
//	suspension.go, cleanup.go, force.go
//	               when objects go
//	waiting.go     what users are told of objects that don't go
//	mpi.go, mpi_files.go
//	               what MPIJobs do otherwise, and the files that their Pods share
//	gang.go, elastic.go
//	               the PodGroup and the autoscaler
//	services.go    by which Services Pods are reached
//	actions.go     what is to be done
//	events.go      what users are told
//	builder.go, env_*.go
//	               what Pods and Services look like
package kubeflow
