// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
)

// componentName is the source of events.
const componentName = "lockstep-controller"

// Controller runs Frameworks. Several may run against one API server only if one
// of them is elected.
type Controller struct {
	kube            kubernetes.Interface
	lockstep        versioned.Interface
	frameworkClient frameworkClient

	frameworks, configMaps, pods, podGroups cache.SharedIndexInformer
	// priorityClasses need not be filled: a controller that may not read them runs.
	priorityClasses cache.SharedIndexInformer
	// startShared starts the informers that come from factories.
	startShared []func(context.Context)
	// podGroupFactory has the informer that the PodGroup controller shares.
	podGroupFactory externalversions.SharedInformerFactory

	queue       fair.Queue
	fairWorkers *fair.Workers
	broadcaster record.EventBroadcaster
	events      record.EventRecorder
	known       knowledge
	metrics     *metrics
	ready       atomic.Bool

	clock   clock.PassiveClock
	entropy lifecycle.Entropy

	options   lifecycle.Options
	history   historyLog
	workers   int
	batchSize int
	window    time.Duration
	compress  bool
}

// New makes a Controller from a configuration with defaults, that was found
// valid. Its metrics are registered with registerer.
func New(clients Clients, config *configv1alpha1.ControllerConfiguration, registerer prometheus.Registerer) (*Controller, error) {
	frameworks := clients.Lockstep.FrameworkcontrollerV1().RESTClient()
	options, err := lifecycleOptions(config)
	if err != nil {
		return nil, err
	}
	history := newHistoryLog(config.LogObjectSnapshot)
	coreFactory, configMaps, pods, err := newCoreInformers(clients.Kube, history.on[onPodDeletion])
	if err != nil {
		return nil, fmt.Errorf("making the informers: %w", err)
	}
	podGroupFactory := externalversions.NewSharedInformerFactoryWithOptions(clients.Lockstep, 0,
		externalversions.WithTweakListOptions(wantCurrent))
	classFactory := informers.NewSharedInformerFactoryWithOptions(clients.Kube, 0, informers.WithTweakListOptions(wantCurrent))
	c := &Controller{
		kube:            clients.Kube,
		lockstep:        clients.Lockstep,
		frameworkClient: frameworkClient{frameworks: frameworks, metadata: clients.Metadata},
		frameworks: cache.NewSharedIndexInformerWithOptions(newFrameworkListWatch(frameworks), &frameworkEntry{},
			cache.SharedIndexInformerOptions{ObjectDescription: "Framework"}),
		configMaps:      configMaps,
		pods:            pods,
		podGroups:       podGroupFactory.Scheduling().V1alpha1().PodGroups().Informer(),
		podGroupFactory: podGroupFactory,
		priorityClasses: classFactory.Scheduling().V1().PriorityClasses().Informer(),
		startShared: []func(context.Context){
			coreFactory.StartWithContext, podGroupFactory.StartWithContext, classFactory.StartWithContext,
		},
		queue:       fair.NewQueue("framework", clock.RealClock{}),
		broadcaster: record.NewBroadcaster(),
		clock:       clock.RealClock{},
		entropy:     systemEntropy{},
		options:     options,
		history:     history,
		workers:     int(*config.WorkerNumber),
		batchSize:   int(*config.PodBatchSize),
		window:      config.StatusCoalesceWindow.Duration,
		compress:    *config.LargeFrameworkCompression,
	}
	scheme := runtime.NewScheme() // Events are about references: no type is looked up.
	c.events = c.broadcaster.NewRecorder(scheme, corev1.EventSource{Component: componentName})
	if c.metrics, err = newMetrics(registerer, c.queue.Len); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	c.fairWorkers = fair.NewWorkers(c.queue, fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll},
		pacing.Patience, c.process, func(busy time.Duration) { c.metrics.syncSeconds.Observe(busy.Seconds()) })
	return c, c.addHandlers()
}

// lifecycleOptions are the settings that decisions depend on.
func lifecycleOptions(config *configv1alpha1.ControllerConfiguration) (lifecycle.Options, error) {
	rules, err := lifecycle.NewPodFailureRules(config.PodFailureSpec)
	if err != nil {
		return lifecycle.Options{}, err
	}
	return lifecycle.Options{
		GangSchedulerName:       *config.GangSchedulerName,
		CreationTimeout:         configv1alpha1.Seconds(*config.ObjectLocalCacheCreationTimeoutSec),
		CompletedRetention:      configv1alpha1.Seconds(max(0, *config.FrameworkCompletedRetainSec)),
		MinConflictDelaySeconds: *config.FrameworkMinRetryDelaySecForTransientConflictFailed,
		MaxConflictDelaySeconds: *config.FrameworkMaxRetryDelaySecForTransientConflictFailed,
		PodFailures:             rules,
	}, nil
}

// PodGroupFactory holds the informer of all PodGroups, to be shared with the
// PodGroup controller. Run starts it.
func (c *Controller) PodGroupFactory() externalversions.SharedInformerFactory {
	return c.podGroupFactory
}

// Ready says whether the caches are filled and Frameworks are being synced.
func (c *Controller) Ready() bool {
	return c.ready.Load()
}

// Run syncs Frameworks until ctx ends, and returns when the work begun is done.
// It runs once.
func (c *Controller) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx).WithName("framework-controller")
	ctx = klog.NewContext(ctx, logger)
	defer c.ready.Store(false)

	c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.kube.CoreV1().Events("")})
	defer c.broadcaster.Shutdown()

	defer c.flush(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	running.Go(func() { c.frameworks.RunWithContext(ctx) })
	for _, start := range c.startShared {
		start(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.frameworks.HasSynced, c.configMaps.HasSynced, c.pods.HasSynced, c.podGroups.HasSynced) {
		return nil // ctx has ended.
	}
	logger.Info("Running Frameworks", "workers", c.workers)
	c.ready.Store(true)
	for range c.workers {
		running.Go(func() { c.fairWorkers.Work(ctx, &running) })
	}
	<-ctx.Done()
	return nil
}
