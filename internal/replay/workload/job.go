// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload reads and generates the jobs and the nodes of a replay. The package is pure: its input are readers
// and seeds.
package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Job is one gang of Pods that are alike.
type Job struct {
	// Name is unique in its workload.
	Name string
	// Owner is the user, team or virtual cluster to which the job belongs. Each owner gets a namespace. Owner may be
	// empty.
	Owner string
	// Submit is when the job is created, counted from the begin of the workload.
	Submit time.Duration
	// Runtime is how long the job runs once all of its Pods run.
	Runtime time.Duration
	// Limit is the run time that the owner has requested as the longest; 0 if unknown. Only some policies kill a job
	// that exceeds its limit.
	Limit time.Duration
	// Pods is the number of Pods, at least 1.
	Pods int
	// Units is what each Pod requests of its node: GPUs if the nodes have any, else processors.
	Units int
}

// Size returns the number of units of all Pods together.
func (j *Job) Size() int { return j.Pods * j.Units }

// Nodes are the nodes of a cluster: the units that each of them has.
type Nodes []int

// Uniform returns n nodes of so many units each.
func Uniform(n, units int) Nodes {
	return slices.Repeat(Nodes{units}, n)
}

// Units returns the number of units of all nodes together.
func (n Nodes) Units() int {
	sum := 0
	for _, units := range n {
		sum += units
	}
	return sum
}

// Largest returns the number of units of the largest node.
func (n Nodes) Largest() int { return slices.Max(n) }

// Split divides the units of a job among Pods: one Pod if all units fit on one node, otherwise Pods that each fill a
// node.
func (j *Job) Split(units, perNode int) {
	j.Pods, j.Units = 1, units
	if units > perNode {
		j.Pods, j.Units = (units+perNode-1)/perNode, perNode
	}
}

// Prepare sorts jobs by creation, moves the first creation to time 0, and drops jobs that are too large for the nodes.
// tooLarge is the number of dropped jobs.
func Prepare(jobs []Job, nodes Nodes) (kept []Job, tooLarge int) {
	free := map[int]int{} // by units of a Pod: how many Pods fit on all nodes
	for _, job := range jobs {
		if _, ok := free[job.Units]; !ok {
			fit := 0
			for _, units := range nodes {
				fit += units / job.Units
			}
			free[job.Units] = fit
		}
		if job.Pods <= free[job.Units] {
			kept = append(kept, job)
		}
	}
	slices.SortStableFunc(kept, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := len(kept) - 1; i >= 0; i-- {
		kept[i].Submit -= kept[0].Submit
	}
	return kept, len(jobs) - len(kept)
}

// Check returns an error that names the first job with a field out of range.
func Check(jobs []Job) error {
	names := map[string]bool{}
	for _, job := range jobs {
		switch {
		case job.Name == "" || names[job.Name]:
			return fmt.Errorf("job %q: the name must not be empty, nor that of another job", job.Name)
		case job.Pods < 1 || job.Units < 1:
			return fmt.Errorf("job %q: it has %d Pods of %d units, and both must be at least 1", job.Name, job.Pods, job.Units)
		case job.Runtime < 0 || job.Limit < 0:
			return fmt.Errorf("job %q: run time %s and limit %s must not be negative", job.Name, job.Runtime, job.Limit)
		}
		names[job.Name] = true
	}
	return nil
}

// Load returns the part of all node time that the jobs need between the first creation and the last. 1 means that the
// jobs fill the cluster all the time.
func Load(jobs []Job, nodes Nodes) float64 {
	var asked, last float64
	for _, job := range jobs {
		asked += float64(job.Size()) * job.Runtime.Seconds()
		last = max(last, job.Submit.Seconds())
	}
	if last == 0 {
		return 0
	}
	return asked / last / float64(nodes.Units())
}
