// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	schedulinginformers "github.com/lockstep-k8s/lockstep/client/informers/externalversions/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// window is how long Pod events of a group are collected before the group is synced. It limits a wave of changes to
// little more than one write a second, and a smooth start of a group to one or two writes. No phase or counter is more
// than a second old.
const window = 750 * time.Millisecond

// implicitWindow is the interval at which the controller checks whether the Pods of groups with memberLabels are
// known.
const implicitWindow = 5 * time.Second

// ownWrites bounds for how many groups the last write is remembered until the informer shows it. It bounds memory; a
// forgotten write costs at most one superfluous write.
const ownWrites = 10_000

// Controller keeps the phase and the counters of every PodGroup. Several replicas may run, one of which is elected;
// two at once would do the same work twice.
type Controller struct {
	client versioned.Interface

	// groups is what the PodGroup informer shows, overlaid with own writes that
	// it does not show yet.
	groups cache.MutationCache
	// pods holds the members of the groups that Pods name, by byGroup.
	pods cache.SharedIndexInformer
	// implicit hold those of groups with memberLabels. Others run them.
	implicit []cache.SharedIndexInformer
	// unread are the namespaces with Pods that may not be read: groups there are left as they are.
	unread *informing.Unread
	loop   *fair.Loop

	// synced are the informers that a sync needs.
	synced []cache.InformerSynced
	ready  atomic.Bool
}

// New returns a Controller that keeps the status of the PodGroups of an informer, which the caller starts. The caller
// also starts the informers of the Pods that belong to PodGroups with memberLabels. The controller writes statuses
// with lockstepClient, and reads Pods that have a group with podClient, in the namespaces of the informer. It needs
// get, list and watch of both, and patch of podgroups/status.
func New(lockstepClient versioned.Interface, podClient kubernetes.Interface,
	podGroups schedulinginformers.PodGroupInformer, namespaces informing.Namespaces, implicit ...cache.SharedIndexInformer) (*Controller, error) {
	groups := podGroups.Informer()
	pods, err := newPodInformer(podClient, namespaces)
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	c := &Controller{
		client: lockstepClient,
		pods:   pods, implicit: implicit,
		groups: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), groups.GetStore(),
			cache.MutationCacheOptions{MaxCacheSize: ownWrites}),
	}
	c.loop = fair.NewLoop("podgroup", "PodGroup", fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll},
		pacing.Patience, c.sync)
	c.unread = namespaces.Unread(func(namespace string) {
		for _, group := range informing.In(groups, namespace) {
			c.onGroup(nil, group)
		}
	})
	if err := c.addHandlers(groups); err != nil {
		return nil, err
	}
	return c, nil
}

// Ready reports whether the caches are filled and groups are being kept.
func (c *Controller) Ready() bool { return c.ready.Load() }

// Longest returns the sync that has been running for the longest time, and how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.loop.Longest() }

// Run syncs groups on a number of workers until ctx ends, and returns when the work that has begun is done. Call it
// once. It returns an error only if it can't start.
func (c *Controller) Run(ctx context.Context, workers int) error {
	if workers < 1 {
		return fmt.Errorf("the PodGroup controller has %d workers, it needs at least 1", workers)
	}
	logger := klog.FromContext(ctx).WithName("podgroup-controller")
	ctx = klog.NewContext(ctx, logger)

	var running sync.WaitGroup
	defer running.Wait()
	defer c.loop.ShutDown()

	running.Go(func() { c.pods.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return nil // ctx has ended.
	}
	logger.Info("Keeping phase and counters of PodGroups", "workers", workers)
	c.ready.Store(true)
	defer c.ready.Store(false)
	c.loop.Start(ctx, workers, &running)
	<-ctx.Done()
	return nil
}
