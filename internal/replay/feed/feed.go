// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feed plays a workload on a cluster. It creates each job when the job is due, notices when all Pods of the job
// have nodes, and ends the job when its run time is over. The cluster and the clock are interfaces.
package feed

import (
	"context"
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
	// End removes a job whose run time is over.
	End(ctx context.Context, job int)
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

	// bound has the Pods that got nodes since the last look.
	mu    sync.Mutex
	bound []binding
	rings chan struct{}

	started  []started
	running  workload.Running
	finished int
	outcome  workload.Outcome
}

// binding is one Pod that has got its node.
type binding struct {
	job, pod, node int
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
	f.mu.Lock()
	f.bound = append(f.bound, binding{job: job, pod: pod, node: node, at: f.clock.Now()})
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
			f.cluster.End(ctx, run.Job)
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

// take starts the jobs of which all Pods have nodes now.
func (f *Feed) take(ctx context.Context) {
	f.mu.Lock()
	bound := f.bound
	f.bound = nil
	f.mu.Unlock()
	for _, b := range bound {
		job, s := &f.jobs[b.job], &f.started[b.job]
		if s.bound == 0 {
			s.since, s.nodes = b.at, make([]int, job.Pods)
		}
		s.nodes[b.pod] = b.node
		if s.bound++; s.bound < job.Pods {
			continue
		}
		f.outcome.PartTime += b.at - s.since
		run := workload.Run{Job: b.job, Start: b.at, End: b.at + job.Runtime, Nodes: s.nodes}
		f.outcome.Runs = append(f.outcome.Runs, run)
		f.running.Add(run)
		f.cluster.Started(ctx, b.job)
	}
}
