// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feed plays a workload on a cluster. It creates each job when the job is due, notices when all Pods of the job
// have nodes, and ends the job when its run time is over. If the cluster says that a job was preempted (Evicted), the job
// is created again and runs from its begin. The cluster and the clock are interfaces.
package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Cluster runs the jobs. Feed calls one method at a time, and names each job by its number in the workload.
type Cluster interface {
	// Create creates the Pods of a job.
	Create(ctx context.Context, job int)
	// Started is called when all Pods of a job have nodes.
	Started(ctx context.Context, job int)
	// End removes what is left of a job. done reports that the job's run time is over; else the job was preempted.
	End(ctx context.Context, job int, done bool)
}

// Clock is the time of the workload, counted from its begin.
type Clock interface {
	Now() time.Duration
	// After returns a channel that receives when a time has come.
	After(at time.Duration) <-chan time.Time
}

// Feed feeds a cluster with jobs.
type Feed struct {
	jobs    []workload.Job
	cluster Cluster
	clock   Clock
	// patience is how long jobs may wait while no job runs, before they count as waiting for ever.
	patience time.Duration

	// news has the Pods that got nodes or were evicted since the last look.
	mu    sync.Mutex
	news  []event
	rings chan struct{}

	started  []started
	running  workload.Running
	finished int
	outcome  workload.Outcome
}

// event is that a Pod has got its node, or that a Pod of a job was evicted.
type event struct {
	job, pod, node int
	evicted        bool
	at             time.Duration
}

// started is the part of a job that has nodes.
type started struct {
	since time.Duration
	nodes []int
	bound int
}

// New returns a Feed of jobs, which must be sorted by the time of their creation. policy becomes the name of the
// outcome.
func New(policy string, jobs []workload.Job, cluster Cluster, clock Clock, patience time.Duration) *Feed {
	return &Feed{
		jobs: jobs, cluster: cluster, clock: clock, patience: patience,
		rings: make(chan struct{}, 1), started: make([]started, len(jobs)), outcome: workload.Outcome{Policy: policy},
	}
}

// Bound records that a Pod of a job has got a node. All three are named by their numbers. Bound is safe for concurrent
// use.
func (f *Feed) Bound(job, pod, node int) {
	f.note(event{job: job, pod: pod, node: node})
}

// Evicted records that a Pod of a job was evicted. Evicted is safe for concurrent use.
func (f *Feed) Evicted(job int) {
	f.note(event{job: job, evicted: true})
}

func (f *Feed) note(of event) {
	f.mu.Lock()
	of.at = f.clock.Now()
	f.news = append(f.news, of)
	f.mu.Unlock()
	select {
	case f.rings <- struct{}{}:
	default:
	}
}

// Run plays all jobs until each has ended, or until the remaining jobs would wait for ever. If ctx ends first, it
// returns the runs so far, and the cause.
func (f *Feed) Run(ctx context.Context) (workload.Outcome, error) {
	for next := 0; ; {
		now := f.clock.Now()
		for run, ok := f.running.Ended(now); ok; run, ok = f.running.Ended(now) {
			f.cluster.End(ctx, run.Job, true)
			f.started[run.Job] = started{}
			f.finished++
		}
		if f.finished == len(f.jobs) {
			return f.outcome, nil
		}
		for next < len(f.jobs) && f.jobs[next].Submit <= now {
			f.cluster.Create(ctx, next)
			next++
		}
		at, running := f.running.End()
		switch {
		case next < len(f.jobs) && (!running || f.jobs[next].Submit < at):
			at = f.jobs[next].Submit
		case !running:
			at = now + f.patience
		}
		select {
		case <-f.clock.After(at):
			if next == len(f.jobs) && !running {
				f.countPartial(f.clock.Now())
				return f.outcome, nil
			}
		case <-f.rings:
			f.take(ctx)
		case <-ctx.Done():
			return f.outcome, context.Cause(ctx)
		}
	}
}

// countPartial counts the time for which gangs have some of their Pods on nodes, and will never have all.
func (f *Feed) countPartial(now time.Duration) {
	for job := range f.started {
		if s := &f.started[job]; s.bound > 0 && s.bound < f.jobs[job].Pods {
			f.outcome.PartTime += now - s.since
		}
	}
}

// take starts the jobs of which all Pods have nodes now, and begins again with jobs that were preempted.
func (f *Feed) take(ctx context.Context) {
	for one, ok := f.next(); ok; one, ok = f.next() {
		if one.evicted {
			f.evict(ctx, one.job, one.at)
		} else {
			f.bind(ctx, one)
		}
	}
}

// next removes the first event, and returns it; false if there is none.
func (f *Feed) next() (first event, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.news) == 0 {
		return event{}, false
	}
	first, f.news = f.news[0], f.news[1:]
	return first, true
}

// bind counts a Pod that has got its node, and starts the job if this is its last one.
func (f *Feed) bind(ctx context.Context, pod event) {
	job, s := &f.jobs[pod.job], &f.started[pod.job]
	if s.bound == 0 {
		s.since, s.nodes = pod.at, make([]int, job.Pods)
	}
	s.nodes[pod.pod] = pod.node
	if s.bound++; s.bound < job.Pods {
		return
	}
	f.outcome.PartTime += pod.at - s.since
	run := workload.Run{Job: pod.job, Start: pod.at, End: pod.at + job.Runtime, Nodes: s.nodes}
	f.outcome.Runs = append(f.outcome.Runs, run)
	f.running.Add(run)
	f.cluster.Started(ctx, pod.job)
}

// forget drops all events of a job's Pods that have not been taken.
func (f *Feed) forget(job int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.news = slices.DeleteFunc(f.news, func(one event) bool { return one.job == job })
}

// evict ends the present run of a job, and creates the job again. It does nothing if no Pod of the job has a node,
// because the job has ended.
func (f *Feed) evict(ctx context.Context, job int, at time.Duration) {
	s := &f.started[job]
	if s.bound == 0 {
		return
	}
	if f.running.Remove(job) {
		for i := range slices.Backward(f.outcome.Runs) {
			if run := &f.outcome.Runs[i]; run.Job == job {
				run.End, run.Preempted = at, true
				break
			}
		}
	} else {
		f.outcome.PartTime += at - s.since
	}
	*s = started{}
	f.cluster.End(ctx, job, false)
	f.forget(job) // what has happened to the Pods that are gone
	f.cluster.Create(ctx, job)
}
