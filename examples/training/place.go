// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
)

// place is where a process stands in its job.
type place struct {
	// rank is which of the workers it is, from 0; -1 says that this is known only once it has
	// joined the others. workers is how many there are.
	rank, workers int
	// attempt is how often the job has begun before.
	attempt int
	// join connects a worker to the others.
	join func(ctx context.Context) (reducer, error)
	// serve is what a process does that is no worker, until all workers have left. Nil for a
	// worker.
	serve func(ctx context.Context) error
}

func (p place) String() string {
	if p.rank < 0 {
		return fmt.Sprintf("one of %d workers", p.workers)
	}
	return fmt.Sprintf("worker %d of %d", p.rank, p.workers)
}

// reducer sums vectors over all workers.
type reducer interface {
	// AllReduce replaces v, which has the same length in all workers, by the sum over all.
	AllReduce(v []float64) error
	// Rank is which of the workers this one is.
	Rank() int
	// Close leaves the others.
	Close()
}

// placeInFramework is that of a task, by what Lockstep injects.
func placeInFramework(getenv func(string) string, workers, port int) (place, error) {
	rank, err := strconv.Atoi(getenv("FC_TASK_INDEX"))
	if err != nil {
		return place{}, fmt.Errorf("FC_TASK_INDEX is %q, not a number: run this as a task of a Framework, or in a training job of Kubeflow", getenv("FC_TASK_INDEX"))
	}
	attempt, err := strconv.Atoi(getenv("FC_FRAMEWORK_ATTEMPT_ID"))
	if err != nil {
		return place{}, fmt.Errorf("FC_FRAMEWORK_ATTEMPT_ID is %q, not a number: run this as a task of a Framework", getenv("FC_FRAMEWORK_ATTEMPT_ID"))
	}
	switch {
	case workers < 1:
		return place{}, fmt.Errorf("-workers is %d, must be at least 1", workers)
	case rank < 0 || rank >= workers:
		return place{}, fmt.Errorf("FC_TASK_INDEX is %d, but there are %d workers", rank, workers)
	}
	peer := peersInFramework(getenv, port)
	return place{rank: rank, workers: workers, attempt: attempt, join: func(ctx context.Context) (reducer, error) {
		return join(ctx, rank, workers, peer)
	}}, nil
}

// peersInFramework is where the other tasks of a role are.
func peersInFramework(getenv func(string) string, port int) func(rank int) (string, int) {
	domain := getenv("FC_FRAMEWORK_NAME") + "." + getenv("FC_FRAMEWORK_NAMESPACE") + ".svc.cluster.local"
	role := getenv("FC_TASKROLE_NAME")
	return func(rank int) (string, int) { return fmt.Sprintf("%s-%d.%s", role, rank, domain), port }
}
