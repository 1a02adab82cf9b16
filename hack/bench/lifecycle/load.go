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

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// roleName is the role that all tasks of a Framework have.
const roleName = "worker"

// shape makes a Framework with a number of tasks, each of one core, that run for so long,
// or for ever.
type shape func(name string, tasks int, runFor time.Duration) *frameworkv1.Framework

// plain is what FrameworkController knows: no gang, and the default scheduler.
func plain(name string, tasks int, runFor time.Duration) *frameworkv1.Framework {
	return jobs.MakeFramework(name).Role(roleName, int32(tasks), task(runFor)).Obj()
}

// gang is placed all at once, by Lockstep's scheduler.
func gang(name string, tasks int, runFor time.Duration) *frameworkv1.Framework {
	return jobs.MakeFramework(name).Gang().Role(roleName, int32(tasks), task(runFor)).Obj()
}

func task(runFor time.Duration) *jobs.TaskBuilder {
	if runFor > 0 {
		return jobs.RunFor(runFor, 0).CPU("1")
	}
	return jobs.RunForever().CPU("1")
}

// createFrameworks creates n Frameworks, each of a number of tasks, that run for ever.
func (c *cluster) createFrameworks(ctx context.Context, namespace string, of shape, n, tasks int) error {
	return harness.Parallel(ctx, n, func(ctx context.Context, i int) error {
		return c.create(ctx, namespace, of(fmt.Sprintf("f%d", i), tasks, 0))
	})
}

func (c *cluster) create(ctx context.Context, namespace string, fw *frameworkv1.Framework) error {
	_, err := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(ctx, fw, metav1.CreateOptions{})
	return err
}

// waitFrameworks watches until n Frameworks of a namespace fulfil a condition.
func (c *cluster) waitFrameworks(ctx context.Context, namespace string, n int, what string, condition func(*frameworkv1.FrameworkStatus) bool) error {
	fulfilled := map[string]bool{}
	source := cache.NewListWatchFromClient(c.Lockstep.FrameworkcontrollerV1().RESTClient(), frameworkv1.FrameworkPlural, namespace, fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, source, &frameworkv1.Framework{}, nil, func(event watch.Event) (bool, error) {
		if fw, ok := event.Object.(*frameworkv1.Framework); ok && fw.Status != nil && condition(fw.Status) {
			fulfilled[fw.Name] = true
		}
		return len(fulfilled) >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Frameworks %s: %w", len(fulfilled), n, what, err)
	}
	return nil
}

// waitRunning waits until all tasks of n Frameworks run.
func (c *cluster) waitRunning(ctx context.Context, namespace string, n, tasks int) error {
	return c.waitFrameworks(ctx, namespace, n, "run all their tasks", func(s *frameworkv1.FrameworkStatus) bool {
		return s.Tasks != nil && int(s.Tasks.Running) == tasks
	})
}

// waitStarted waits until all tasks of a Framework run, or have run.
func (c *cluster) waitStarted(ctx context.Context, namespace string, tasks int) error {
	return c.waitFrameworks(ctx, namespace, 1, "have started all their tasks", func(s *frameworkv1.FrameworkStatus) bool {
		return s.Tasks != nil && int(s.Tasks.Running+s.Tasks.Succeeded) == tasks
	})
}

// waitSucceeded waits until a Framework has completed, with all tasks succeeded.
func (c *cluster) waitSucceeded(ctx context.Context, namespace string, tasks int) error {
	err := c.waitFrameworks(ctx, namespace, 1, "are Completed", func(s *frameworkv1.FrameworkStatus) bool {
		return s.State == frameworkv1.FrameworkCompleted
	})
	if err != nil {
		return err
	}
	list, err := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Frameworks: %w", err)
	}
	for i := range list.Items {
		if fw := &list.Items[i]; int(fw.Status.Tasks.Succeeded) != tasks {
			return fmt.Errorf("not all tasks succeeded: %s", localenv.DescribeFramework(fw))
		}
	}
	return nil
}
