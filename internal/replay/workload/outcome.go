// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Outcome is what became of a workload under one policy.
type Outcome struct {
	// Policy is the name of the policy.
	Policy string
	// Runs are the runs of jobs, in the order of their starts. A job that was preempted has several.
	Runs []Run
	// PartTime is for how long some, but not all Pods of gangs had a node, all gangs together. It must be 0, but for the time that a
	// scheduler takes to bind the Pods of a gang.
	PartTime time.Duration
	// CPU is the processor time that the scheduler took, 0 for policies that are a model.
	CPU time.Duration
}

// Run is one run of a job: all of its Pods have a node.
type Run struct {
	// Job is the number of the job in the workload.
	Job int
	// Start is when all Pods had a node, End when they had ended.
	Start, End time.Duration
	// Nodes are the numbers of the nodes of its Pods.
	Nodes []int
	// Preempted says that the run was ended before the job was done.
	Preempted bool
}
