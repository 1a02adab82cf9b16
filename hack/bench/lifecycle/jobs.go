// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// compareJobs measures n Volcano Jobs of so many tasks against gangs of Frameworks, from the
// first creation until all run, and holds the ratio to a bar. One controller runs both.
func compareJobs(ctx context.Context, b *harness.Bench, n, tasks int, bar float64) error {
	up, err := b.Up(ctx, localenv.Options{SimulatedNodes: 1000, NodeCPU: "32", With: "scheduler"})
	if err != nil {
		return err
	}
	c := &cluster{Cluster: up}
	if err := c.InstallVolcanoJobs(ctx); err != nil {
		return err
	}
	controller, err := c.StartController(ctx, localenv.WithVolcanoJobs(""))
	if err != nil {
		return err
	}
	if err := controller.WaitReady(ctx); err != nil {
		return err
	}
	return duel(ctx, b,
		contender{"Volcano Jobs", func(ctx context.Context) (time.Duration, error) { return c.runJobs(ctx, n, tasks) }},
		contender{"gangs of Frameworks", func(ctx context.Context) (time.Duration, error) { return c.runFrameworks(ctx, gang, n, tasks) }},
		bar)
}

// runJobs is how long n Volcano Jobs take.
func (c *cluster) runJobs(ctx context.Context, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = timed(ctx,
			func(ctx context.Context) error { return c.createJobs(ctx, namespace, n, tasks) },
			func(ctx context.Context) error { return c.waitJobsRunning(ctx, namespace, n, tasks) })
		return err
	})
	return took, err
}

// createJobs creates n Volcano Jobs of the tasks that gang has.
func (c *cluster) createJobs(ctx context.Context, namespace string, n, tasks int) error {
	template := gang("", tasks, 0).Spec.TaskRoles[0].Task.Pod
	return harness.Parallel(ctx, n, func(ctx context.Context, i int) error {
		_, err := c.Lockstep.BatchV1alpha1().Jobs(namespace).Create(ctx, &batchv1alpha1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("f%d", i)},
			Spec: batchv1alpha1.JobSpec{
				Tasks: []batchv1alpha1.TaskSpec{{Name: roleName, Replicas: int32(tasks), Template: template}},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// waitJobsRunning watches until all Pods of n Volcano Jobs run, by their statuses.
func (c *cluster) waitJobsRunning(ctx context.Context, namespace string, n, tasks int) error {
	running := map[string]bool{}
	source := cache.NewListWatchFromClient(c.Lockstep.BatchV1alpha1().RESTClient(), "jobs", namespace, fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, source, &batchv1alpha1.Job{}, nil, func(event watch.Event) (bool, error) {
		if job, ok := event.Object.(*batchv1alpha1.Job); ok && int(job.Status.Running) == tasks {
			running[job.Name] = true
		}
		return len(running) >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Volcano Jobs run all their Pods: %w", len(running), n, err)
	}
	return nil
}
