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
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
)

// Back-off of a group whose status could not be written.
const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// ownWrites is how many groups' last writes are remembered until the informer
// shows them. It bounds memory; forgetting one may only cost a write too many.
const ownWrites = 10_000

// Controller keeps the phase and the counters of every PodGroup. It is safe to
// run in several replicas of which one is elected; two at once would do the same
// work twice.
type Controller struct {
	client versioned.Interface
	window time.Duration

	// groups is what the PodGroup informer shows, overlaid with own writes that
	// it does not show yet.
	groups cache.MutationCache
	// pods holds the members of all groups, by byGroup.
	pods  cache.SharedIndexInformer
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]

	// synced are the informers that a sync needs.
	synced []cache.InformerSynced
	// start starts the informers that are the Controller's own, stop waits for
	// their end.
	start func(ctx context.Context)
	stop  func()
}

// New makes a Controller that reads and writes PodGroups with lockstepClient and
// reads Pods, only those with a group, with podClient. It needs get, list and
// watch of both, and patch of podgroups/status.
func New(lockstepClient versioned.Interface, podClient kubernetes.Interface, opts ...Option) (*Controller, error) {
	o := options{window: defaultWindow}
	for _, opt := range opts {
		opt(&o)
	}
	if o.window < 0 {
		return nil, fmt.Errorf("the PodGroup controller's window is %v, it must be 0s or more", o.window)
	}

	c := &Controller{
		client: lockstepClient,
		window: o.window,
		pods:   newPodInformer(podClient),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minRetryDelay, maxRetryDelay),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "podgroup"}),
	}

	var factory externalversions.SharedInformerFactory
	if o.podGroups == nil {
		factory = externalversions.NewSharedInformerFactory(lockstepClient, 0)
		o.podGroups = factory.Scheduling().V1alpha1().PodGroups()
	}
	groups := o.podGroups.Informer()
	c.groups = cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), groups.GetStore(),
		cache.MutationCacheOptions{MaxCacheSize: ownWrites})

	var informers sync.WaitGroup
	c.start = func(ctx context.Context) {
		informers.Go(func() { c.pods.RunWithContext(ctx) })
		if factory != nil {
			factory.StartWithContext(ctx)
		}
	}
	c.stop = func() {
		informers.Wait()
		if factory != nil {
			factory.Shutdown()
		}
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
	defer c.stop()
	defer running.Wait()
	defer c.queue.ShutDown()

	c.start(ctx)
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
