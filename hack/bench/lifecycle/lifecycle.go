// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle measures what it costs that Pods are tasks of Frameworks: in
// time against a bare client that creates the same Pods, and in writes, bytes,
// processor time and memory of the controller.
//
// What is compared with bare Pods is measured twice: of plain Frameworks, which is
// what FrameworkController knows, and of gangs. Everything else is of gangs. Bare
// Pods are placed one by one by the scheduler of the Frameworks beside them. Volcano
// Jobs and TFJobs are compared with gangs, and a large TFJob also with a gang that has a Service
// for each Pod, as TFJobs do, or has one Service itself. A Framework or a Job counts as running when its status
// says so of all its tasks, a bare Pod when its own status does.
package lifecycle

import (
	"context"
	"time"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Cases are the measurements of the controller.
func Cases() []harness.Case {
	return []harness.Case{
		{
			Name: "lifecycle/one", Title: "1 Framework of 1000 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error { return compare(ctx, b, 1, 1000, 1.3) },
		},
		{
			Name: "lifecycle/many", Title: "200 Frameworks of 4 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error { return compare(ctx, b, 200, 4, 1.5) },
		},
		{
			Name: "lifecycle/one-job", Title: "1 Volcano Job of 1000 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, volcanoJobs, gangsAlone, 1, 1000, 1.1)
			},
		},
		{
			Name: "lifecycle/many-jobs", Title: "200 Volcano Jobs of 4 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, volcanoJobs, gangsAlone, 200, 4, 1.1)
			},
		},
		{
			Name: "lifecycle/one-tfjob", Title: "1 TFJob of 1000 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, tfJobs, gangsAlone, 1, 1000, 1.15)
			},
		},
		{
			Name: "lifecycle/one-tfjob-served", Title: "1 TFJob of 1000 tasks, against a gang with as many Services", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, tfJobs, gangsWithServices, 1, 1000, 1.15)
			},
		},
		{
			Name: "lifecycle/one-tfjob-per-job-service", Title: "1 TFJob of 1000 tasks with one Service", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, tfJobsSharing, gangsAlone, 1, 1000, 1.15)
			},
		},
		{
			Name: "lifecycle/many-tfjobs", Title: "200 TFJobs of 4 tasks", Limit: 30 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error {
				return compareJobs(ctx, b, tfJobs, gangsAlone, 200, 4, 1.15)
			},
		},
		{Name: "lifecycle/writes", Title: "Writes of the status from creation to Completed", Run: statusWrites},
		{Name: "lifecycle/large", Title: "1 Framework of 10,000 tasks", Limit: 20 * time.Minute, Run: large},
		{Name: "lifecycle/idle", Title: "2000 running Frameworks of 4 tasks", Limit: 20 * time.Minute, Run: idle},
		{
			Name: "lifecycle/retained-large", Title: "A leader over 100 Completed Frameworks of 10,000 tasks", Limit: 20 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error { return retained(ctx, b, 100, 10_000) },
		},
		{
			Name: "lifecycle/retained-many", Title: "A leader over 10,000 Completed Frameworks of 100 tasks", Limit: 20 * time.Minute,
			Run: func(ctx context.Context, b *harness.Bench) error { return retained(ctx, b, 10_000, 100) },
		},
		{Name: "lifecycle/growth", Title: "Growth with the number of tasks", Limit: 20 * time.Minute, Run: growth},
	}
}

// up brings up the cluster that all cases measure on: 1000 simulated nodes.
func up(ctx context.Context, b *harness.Bench) (*cluster, error) {
	c, err := b.Up(ctx, localenv.Options{SimulatedNodes: 1000, NodeCPU: "32", With: "controller,scheduler"})
	if err != nil {
		return nil, err
	}
	return &cluster{Cluster: c, bench: b}, nil
}

// cluster is where Frameworks and bare Pods are measured.
type cluster struct {
	*harness.Cluster
	bench *harness.Bench
}
