// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	schedulinginformers "github.com/lockstep-k8s/lockstep/client/informers/externalversions/scheduling/v1alpha1"
)

// Back-off of a group whose status could not be written.
const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// window is how long Pod events of a group are collected before the group is synced.
// It makes of a wave of them little more than one write a second. A group that starts
// without trouble is written once or twice, and no phase or counter is a second old.
const window = 750 * time.Millisecond

// ownWrites is how many groups' last writes are remembered until the informer
// shows them. It bounds memory; forgetting one may only cost a write too many.
const ownWrites = 10_000

// Controller keeps the phase and the counters of every PodGroup. It is safe to
// run in several replicas of which one is elected; two at once would do the same
// work twice.
type Controller struct {
	client versioned.Interface

	// groups is what the PodGroup informer shows, overlaid with own writes that
	// it does not show yet.
	groups cache.MutationCache
	// pods holds the members of all groups, by byGroup.
	pods  cache.SharedIndexInformer
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]

	// synced are the informers that a sync needs.
	synced []cache.InformerSynced
}

// New makes a Controller that keeps the PodGroups of an informer, which its caller
// starts. It writes their status with lockstepClient, and reads Pods, only those with
// a group, with podClient. It needs get, list and watch of both, and patch of
// podgroups/status.
func New(lockstepClient versioned.Interface, podClient kubernetes.Interface, podGroups schedulinginformers.PodGroupInformer) (*Controller, error) {
	groups := podGroups.Informer()
	c := &Controller{
		client: lockstepClient,
		pods:   newPodInformer(podClient),
		groups: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), groups.GetStore(),
			cache.MutationCacheOptions{MaxCacheSize: ownWrites}),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minRetryDelay, maxRetryDelay),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "podgroup"}),
	}
	if err := c.addHandlers(groups); err != nil {
		return nil, err
	}
	return c, nil
}

// Run keeps the groups, workers of them at the same time, until ctx ends, and
// returns when the work begun is done. It runs once. It returns an error only if
// it can't begin.
func (c *Controller) Run(ctx context.Context, workers int) error {
	if workers < 1 {
		return fmt.Errorf("the PodGroup controller has %d workers, it needs at least 1", workers)
	}
	logger := klog.FromContext(ctx).WithName("podgroup-controller")
	ctx = klog.NewContext(ctx, logger)

	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()

	running.Go(func() { c.pods.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return nil // ctx has ended.
	}
	logger.Info("Keeping phase and counters of PodGroups", "workers", workers)
	for range workers {
		running.Go(func() { wait.UntilWithContext(ctx, c.work, time.Second) })
	}
	<-ctx.Done()
	return nil
}

// work syncs groups until the queue shuts down.
func (c *Controller) work(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.process(ctx, key)
	}
}

func (c *Controller) process(ctx context.Context, key cache.ObjectName) {
	defer c.queue.Done(key)
	logger := klog.FromContext(ctx)
	ref := klog.KRef(key.Namespace, key.Name)
	err := c.sync(ctx, key)
	switch {
	case err == nil:
		c.queue.Forget(key)
		return
	case ctx.Err() != nil:
		// The error is that of stopping.
	case apierrors.IsConflict(err):
		// Another group has taken the name, and the informer does not show it yet.
		logger.V(4).Info("PodGroup was replaced or written by others, will be tried again", "podGroup", ref, "reason", err.Error())
	default:
		logger.Error(err, "Keeping a PodGroup failed, will be tried again", "podGroup", ref)
	}
	c.queue.AddRateLimited(key)
}
