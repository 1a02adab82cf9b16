// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// componentName is the source of events.
const componentName = "lockstep-controller"

// Clients are what the controller reads and writes with.
type Clients struct {
	// Kube reads and writes ConfigMaps, Pods and events.
	Kube kubernetes.Interface
	// Lockstep reads Frameworks, writes their status, and reads and writes
	// PodGroups.
	Lockstep versioned.Interface
	// Metadata reads metadata of Frameworks and deletes them.
	Metadata metadata.Interface
}

// NewClients makes the clients of an API server. They share one rate, which is the
// QPS and the Burst of config, or its RateLimiter if it has one. A Burst of 0 or
// less sends requests one by one.
func NewClients(config *rest.Config) (Clients, error) {
	var clients Clients
	var err error
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(1, config.Burst))
	}
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if clients.Kube, err = kubernetes.NewForConfig(core); err != nil {
		return clients, fmt.Errorf("making the Kubernetes client: %w", err)
	}
	if clients.Lockstep, err = versioned.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the Lockstep client: %w", err)
	}
	if clients.Metadata, err = metadata.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the metadata client: %w", err)
	}
	return clients, nil
}

// Controller runs Frameworks. Several may run against one API server only if one
// of them is elected.
type Controller struct {
	kube     kubernetes.Interface
	lockstep versioned.Interface
	writer   frameworkWriter

	frameworks, configMaps, pods, podGroups cache.SharedIndexInformer
	// startShared starts the informers that come from factories.
	startShared []func(context.Context)
	// podGroupFactory has the informer that the PodGroup controller shares.
	podGroupFactory externalversions.SharedInformerFactory

	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
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
	return newController(clients, config, registerer, newFrameworkListWatch(frameworks),
		metadataWriter{client: clients.Metadata, updates: frameworks}, clock.RealClock{}, systemEntropy{})
}

func newController(clients Clients, config *configv1alpha1.ControllerConfiguration, registerer prometheus.Registerer,
	frameworks cache.ListerWatcher, writer frameworkWriter, clock clock.PassiveClock, entropy lifecycle.Entropy) (*Controller, error) {
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
	c := &Controller{
		kube:     clients.Kube,
		lockstep: clients.Lockstep,
		writer:   writer,
		frameworks: cache.NewSharedIndexInformerWithOptions(frameworks, &frameworkEntry{},
			cache.SharedIndexInformerOptions{ObjectDescription: "Framework"}),
		configMaps:      configMaps,
		pods:            pods,
		podGroups:       podGroupFactory.Scheduling().V1alpha1().PodGroups().Informer(),
		podGroupFactory: podGroupFactory,
		startShared:     []func(context.Context){coreFactory.StartWithContext, podGroupFactory.StartWithContext},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](pacing.MinBackoff, pacing.MaxBackoff),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "framework"}),
		broadcaster: record.NewBroadcaster(),
		clock:       clock,
		entropy:     entropy,
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
		running.Go(func() { c.work(ctx, &running) })
	}
	<-ctx.Done()
	return nil
}

// work syncs Frameworks until the queue shuts down. A sync that outlasts its turn is
// among those that are still running.
func (c *Controller) work(ctx context.Context, running *sync.WaitGroup) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		turn := newTurn(c.clock)
		running.Go(func() {
			defer turn.end()
			c.process(ctx, key, turn)
		})
		<-turn.over
		c.metrics.syncSeconds.Observe(c.clock.Since(turn.Begun).Seconds())
	}
}

func (c *Controller) process(ctx context.Context, key cache.ObjectName, turn *turn) {
	// Until then the queue lets nobody else have the Framework.
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "framework", klog.KRef(key.Namespace, key.Name))
	// What has begun is brought to its end when the controller is asked to stop: a Pod
	// whose creation is not answered would be a leftover.
	requests, cancel := outlast(ctx)
	defer cancel()
	err := c.sync(klog.NewContext(requests, logger), key, turn)
	if err == nil {
		c.queue.Forget(key)
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	c.metrics.syncErrors.Inc()
	logger.Error(err, "Syncing a Framework failed, will be tried again", "failures", c.queue.NumRequeues(key)+1)
	c.queue.AddRateLimited(key)
}
