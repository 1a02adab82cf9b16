// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Parallelism is how many requests a client that creates things has under way.
const Parallelism = 32

// Parallel calls do with 0 to n-1, Parallelism at a time, and returns the first
// error, after which it starts no more and cancels those under way.
func Parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Parallelism)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

// Cluster is a cluster to measure on.
type Cluster struct {
	*localenv.Cluster
}

// Namespace makes a namespace in which Pods can be created.
func (c *Cluster) Namespace(ctx context.Context) (string, error) {
	return c.CreateNamespace(ctx, metav1.ObjectMeta{GenerateName: "bench-"})
}

// InNamespace runs measure in a new namespace, and deletes it after: the next
// measurement finds the cluster as this one did.
func (c *Cluster) InNamespace(ctx context.Context, measure func(ctx context.Context, namespace string) error) error {
	namespace, err := c.Namespace(ctx)
	if err != nil {
		return err
	}
	if err := measure(ctx, namespace); err != nil {
		return err
	}
	return c.DeleteNamespace(ctx, namespace)
}

// WaitPodsRunning watches until a number of Pods of a namespace run. The API server
// sends each of them once, when it runs.
func (c *Cluster) WaitPodsRunning(ctx context.Context, namespace string, pods int) error {
	running := map[string]bool{}
	source := cache.NewListWatchFromClient(c.Kube.CoreV1().RESTClient(), "pods", namespace,
		fields.OneTermEqualSelector("status.phase", string(corev1.PodRunning)))
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			running[pod.Name] = true
		}
		return len(running) >= pods, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Pods run: %w", len(running), pods, err)
	}
	return nil
}
