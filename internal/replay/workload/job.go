// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload reads and generates the jobs and the nodes of a replay. The package is pure: its input are readers
// and seeds.
package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Job is one gang of Pods that are alike.
type Job struct {
	// Name is for errors.
	Name string
	// Owner is the user, team or virtual cluster to which the job belongs. Each owner gets a namespace. Owner may be
	// empty.
	Owner string
	// Submit is when the job is created, counted from the begin of the workload.
	Submit time.Duration
	// Runtime is how long the job runs once all of its Pods run.
	Runtime time.Duration
	// Limit is the run time that the owner has requested as the longest; 0 if unknown. A job may run for longer; see
	// Enforced.
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

// The largest cluster: its number of nodes, and the units of each node.
const (
	mostNodes = 200_000
	mostUnits = 10_000
)

// NewNodes returns n nodes of so many units each. It returns an error if there are not 1 to 200000 nodes of 1 to 10000
// units.
func NewNodes(n, units int) (Nodes, error) {
	if n < 1 || n > mostNodes || units < 1 || units > mostUnits {
		return nil, fmt.Errorf("%d nodes of %d units: there must be 1 to %d nodes of 1 to %d units", n, units, mostNodes, mostUnits)
	}
	return Uniform(n, units), nil
}

// check returns an error if there are too many nodes, or if a node has a number of units that is out of range.
func (n Nodes) check() error {
	if len(n) > mostNodes {
		return fmt.Errorf("there are %d nodes, and there may be %d", len(n), mostNodes)
	}
	for i, units := range n {
		if units < 1 || units > mostUnits {
			return fmt.Errorf("node %d has %d units, and must have 1 to %d", i, units, mostUnits)
		}
	}
	return nil
}

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
	units = min(units, mostPods)
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

// longest is the longest run time, and the longest time from the first creation of a job to the last: ten years, which
// is also the longest run time that PodGroups may state. A longer limit counts as this one.
const longest = 10 * 365 * 24 * time.Hour

// mostPods is the largest number of Pods of a job, and of units of a Pod.
const mostPods = 1_000_000_000

// Check returns an error that names the first job with a field out of range.
func Check(jobs []Job) error {
	for _, job := range jobs {
		switch {
		case job.Pods < 1 || job.Units < 1 || job.Pods > mostPods || job.Units > mostPods:
			return fmt.Errorf("job %q: it has %d Pods of %d units, and both must be from 1 to %d", job.Name, job.Pods, job.Units, mostPods)
		case job.Runtime < 0 || job.Runtime > longest:
			return fmt.Errorf("job %q: the run time is %.0f s, and must be from 0 to %.0f s (ten years)", job.Name, job.Runtime.Seconds(), longest.Seconds())
		case job.Limit < 0:
			return fmt.Errorf("job %q: the limit is %.0f s, and must not be negative", job.Name, job.Limit.Seconds())
		case job.Submit.Seconds()-jobs[0].Submit.Seconds() > longest.Seconds() || jobs[0].Submit.Seconds()-job.Submit.Seconds() > longest.Seconds():
			return fmt.Errorf("job %q: it is created more than ten years before or after job %q", job.Name, jobs[0].Name)
		}
	}
	return nil
}

// Rounded returns the jobs with times in whole milliseconds, as files have them.
func Rounded(jobs []Job) []Job {
	rounded := slices.Clone(jobs)
	for i := range rounded {
		job := &rounded[i]
		job.Submit, job.Runtime, job.Limit = job.Submit.Round(time.Millisecond), job.Runtime.Round(time.Millisecond), job.Limit.Round(time.Millisecond)
	}
	return rounded
}

// Enforced returns the jobs as they run if their limits are enforced: no job runs for longer than its limit.
func Enforced(jobs []Job) []Job {
	enforced := slices.Clone(jobs)
	for i := range enforced {
		if job := &enforced[i]; job.Limit > 0 {
			job.Runtime = min(job.Runtime, job.Limit)
		}
	}
	return enforced
}

// seconds returns a number of seconds as a Duration, which has room for 292 years.
func seconds(s float64) time.Duration {
	const most = math.MaxInt64 / float64(time.Second)
	switch {
	case s >= most:
		return math.MaxInt64
	case s <= -most:
		return math.MinInt64
	}
	return time.Duration(s * float64(time.Second))
}

// limit returns a limit of so many seconds, at most longest.
func limit(s float64) time.Duration { return min(seconds(s), longest) }

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
