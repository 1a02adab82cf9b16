// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// idle measures a controller that has nothing to do, and then one that finds
// nothing to do after it was killed.
func idle(ctx context.Context, b *harness.Bench) error {
	const n, tasks = 2000, 4
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	namespace, err := c.Namespace(ctx)
	if err != nil {
		return err
	}
	took, err := c.timed(ctx,
		func(ctx context.Context) error { return c.createFrameworks(ctx, namespace, gang, n, tasks) },
		func(ctx context.Context) error { return c.waitRunning(ctx, namespace, n, tasks) })
	if err != nil {
		return err
	}
	b.Logf("all run after %.1f s", took.Seconds())
	if err := c.measureIdle(ctx, b); err != nil {
		return err
	}
	return c.measureRestart(ctx, b, namespace, n)
}

// measureIdle measures processor time and memory over a minute of nothing.
func (c *cluster) measureIdle(ctx context.Context, b *harness.Bench) error {
	const settle, span = 20 * time.Second, time.Minute
	if err := c.pass(ctx, settle); err != nil {
		return err
	}
	before, err := c.Metrics(ctx, component)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.pass(ctx, span); err != nil {
		return err
	}
	after, err := c.Metrics(ctx, component)
	if err != nil {
		return err
	}
	b.Report(harness.Figure{What: "idle CPU of the controller", Value: 100 * (after.CPU() - before.CPU()).Seconds() / time.Since(began).Seconds(),
		Unit: "% of a core", Bar: harness.AtMost(2), Note: "over a minute"})
	b.Report(harness.Figure{What: "memory of the controller", Value: after.MiB(), Unit: "MiB", Bar: harness.AtMost(300)})
	return nil
}

// pass lets time pass.
func (c *cluster) pass(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// measureRestart kills the controller and measures until the next one has looked
// at all Frameworks. Nothing may have been written by then, nor soon after.
func (c *cluster) measureRestart(ctx context.Context, b *harness.Bench, namespace string, n int) error {
	versions, err := c.versions(ctx, namespace)
	if err != nil {
		return err
	}
	killed, err := c.Program(component)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.Kill(ctx, component); err != nil {
		return err
	}
	var seen harness.Metrics
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, false, func(ctx context.Context) (bool, error) {
		program, err := c.Program(component)
		if err != nil || program.PID == killed.PID {
			return false, nil // It is not back yet.
		}
		if seen, err = c.Metrics(ctx, component); err != nil {
			return false, nil // It does not serve yet.
		}
		return seen.Observed(metricSyncSeconds) >= float64(n) && seen.Sum(metricQueueLength) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the restarted controller: %w", err)
	}
	b.Report(harness.Figure{What: "restart to all reconciled", Value: time.Since(began).Seconds(), Unit: "s", Bar: harness.AtMost(10),
		Note: "from SIGKILL, with the second that the supervisor waits"})
	// What is put off must show up too.
	if err := c.pass(ctx, 10*time.Second); err != nil {
		return err
	}
	after, err := c.Metrics(ctx, component)
	if err != nil {
		return err
	}
	now, err := c.versions(ctx, namespace)
	if err != nil {
		return err
	}
	changed := 0
	for object, version := range versions {
		if now[object] != version {
			changed++
		}
	}
	for object := range now {
		if _, ok := versions[object]; !ok {
			changed++
		}
	}
	b.Report(harness.Figure{What: "writes and other actions after the restart", Value: after.Sum(metricStatusWrites) + after.Sum(metricActions), Bar: harness.Exactly(0)})
	b.Report(harness.Figure{What: "objects changed by the restart", Value: float64(changed), Bar: harness.Exactly(0),
		Note: fmt.Sprintf("of %d Frameworks, ConfigMaps, PodGroups and Pods, by resource version", len(versions))})
	return nil
}

// versions are the resource versions of all that Lockstep writes, by kind and
// name.
func (c *cluster) versions(ctx context.Context, namespace string) (map[string]string, error) {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, resource := range []schema.GroupVersionResource{
		frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural),
		schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "pods"},
	} {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			versions[resource.Resource+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
		}
	}
	return versions, nil
}
