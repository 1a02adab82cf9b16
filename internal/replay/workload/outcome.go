// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"container/heap"
	"slices"
	"time"
)

// Outcome is what became of a workload under one policy.
type Outcome struct {
	// Policy is the name of the policy.
	Policy string
	// Runs are the runs of all jobs, in the order of their starts. A job that was preempted has several runs.
	Runs []Run
	// PartTime is how long gangs had nodes for some but not all of their Pods, summed over gangs. It should be 0,
	// except for the time that a scheduler takes to bind the Pods of a gang.
	PartTime time.Duration
	// Held is how many units were kept free for waiting jobs, times for how many seconds, until the last job was created.
	// It has a value for each reason for a reservation, and is nil if unknown.
	Held map[string]float64
	// CPU is the processor time that the scheduler took; 0 for models.
	CPU time.Duration
	// Told are the expected starts that waiting jobs were given, in the order in which they were written; nil for
	// models.
	Told []Told
}

// InTime is the reason for reservations that have a time from which on the job needs its units.
const InTime = "InTime"

// Told is one expected start of a waiting job.
type Told struct {
	// Job is the number of the job in the workload. At is when the expected start was written.
	Job int
	At  time.Duration
	// Latest and Probable are the latest and the probable start of the job; negative if unknown.
	Latest, Probable time.Duration
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

// Running are the runs that go on.
type Running struct{ byEnd runs }

// Add notes that a run has begun.
func (r *Running) Add(run Run) { heap.Push(&r.byEnd, run) }

// End returns when the next run ends, and false if none goes on.
func (r *Running) End() (time.Duration, bool) {
	if len(r.byEnd) == 0 {
		return 0, false
	}
	return r.byEnd[0].End, true
}

// Ended removes a run that has ended by now, the earliest first, and returns it; false if there is none.
func (r *Running) Ended(now time.Duration) (Run, bool) {
	if end, ok := r.End(); !ok || end > now {
		return Run{}, false
	}
	return heap.Pop(&r.byEnd).(Run), true
}

// Remove removes the run of a job before its end, and reports whether the job ran.
func (r *Running) Remove(job int) bool {
	i := slices.IndexFunc(r.byEnd, func(run Run) bool { return run.Job == job })
	if i >= 0 {
		heap.Remove(&r.byEnd, i)
	}
	return i >= 0
}

// All returns the runs, in no order. They must not be changed.
func (r *Running) All() []Run { return r.byEnd }

// runs are a heap: the first is the run that ends first.
type runs []Run

func (r runs) Len() int           { return len(r) }
func (r runs) Less(i, j int) bool { return r[i].End < r[j].End }
func (r runs) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *runs) Push(x any)        { *r = append(*r, x.(Run)) }
func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
