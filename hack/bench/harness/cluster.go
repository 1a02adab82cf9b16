// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
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

// poll is how often a condition is looked at that does not end a measured span.
const poll = 100 * time.Millisecond

// Cluster is a cluster to measure on.
type Cluster struct {
	*testbed.Cluster
}

// Namespace makes a namespace in which Pods can be created.
func (c *Cluster) Namespace(ctx context.Context) (string, error) {
	created, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, err := c.Kube.CoreV1().ServiceAccounts(created.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for the service account of namespace %s: %w", created.Name, err)
	}
	return created.Name, nil
}

// InNamespace runs measure in a new namespace, and empties it after: the next
// measurement finds the cluster as this one did.
func (c *Cluster) InNamespace(ctx context.Context, measure func(ctx context.Context, namespace string) error) error {
	namespace, err := c.Namespace(ctx)
	if err != nil {
		return err
	}
	if err := measure(ctx, namespace); err != nil {
		return err
	}
	return c.empty(ctx, namespace)
}

// empty deletes all of a namespace and waits until it is gone.
func (c *Cluster) empty(ctx context.Context, namespace string) error {
	// In the foreground: no controller makes new Pods while the namespace empties.
	foreground, zero := metav1.DeletePropagationForeground, int64(0)
	err := tryAgain(func() error {
		return c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.ListOptions{})
	})
	if err != nil {
		return fmt.Errorf("deleting Frameworks: %w", err)
	}
	err = tryAgain(func() error {
		return c.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	})
	if err != nil {
		return fmt.Errorf("deleting Pods: %w", err)
	}
	if err := c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace, err)
	}
	err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, err := c.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until namespace %s is gone: %w", namespace, err)
	}
	return nil
}

// tryAgain deletes a collection, a few times if need be. The API server deletes its
// objects one by one, and ends a request after a minute: a slow one may not be done
// by then, and goes on with what is left.
func tryAgain(deletion func() error) error {
	return retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, deletion)
}

// WaitPodsRunning watches until so many Pods of a namespace run. The API server
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
