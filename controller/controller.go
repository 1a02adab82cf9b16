// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/frameworks"
	"github.com/lockstep-k8s/lockstep/controller/kubeflowjobs"
	"github.com/lockstep-k8s/lockstep/controller/tracing"
	"github.com/lockstep-k8s/lockstep/controller/volcanojobs"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// Controller runs Frameworks and, if the configuration enables them, Volcano Jobs and training jobs of Kubeflow.
// Several Controllers may use one API server only if they elect a leader.
type Controller struct {
	engine *engine.Engine
	// podGroupFactory has the informer that the PodGroup controller shares.
	podGroupFactory externalversions.SharedInformerFactory
	frameworks      *frameworks.Owners
	// jobs are Volcano Jobs. These are nil unless the configuration switches them on.
	jobs *volcanojobs.Owners
	// kubeflowJobs are those of each kind. There are none unless they are switched on.
	kubeflowJobs []*kubeflowjobs.Owners
	// start starts the informers of the cores.
	start []func(context.Context)
	// tracer is nil if nothing is traced.
	tracer *tracing.Tracer
}

// lastSpans limits the time to send the last tracing spans when the controller ends.
const lastSpans = 3 * time.Second

// New returns a Controller. config must have its defaults and be valid. The Controller's metrics are registered with
// registerer.
func New(clients Clients, config *configv1alpha1.ControllerConfiguration, registerer prometheus.Registerer) (*Controller, error) {
	return newWith(clients, config, registerer, nil)
}

// newWith is New with a source of random numbers and UIDs; nil means the engine's own.
func newWith(clients Clients, config *configv1alpha1.ControllerConfiguration, registerer prometheus.Registerer,
	entropy plan.Entropy) (*Controller, error) {
	c := &Controller{podGroupFactory: NewPodGroupFactory(clients, config.Namespaces)}
	namespaces := informing.Namespaces(config.Namespaces)
	var err error
	if c.engine, err = engine.New(engine.Options{
		Kube:       clients.Kube,
		Metadata:   clients.Metadata,
		Workers:    int(*config.WorkerNumber),
		BatchSize:  int(*config.PodBatchSize),
		Window:     config.StatusCoalesceWindow.Duration,
		Entropy:    entropy,
		Registerer: registerer,
		Namespaces: namespaces,

		RefuseUnknownFields: *config.UnknownFields == configv1alpha1.UnknownFieldsRefuse,
	}); err != nil {
		return nil, err
	}
	podGroups := c.podGroupFactory.Scheduling().V1alpha1().PodGroups().Informer()
	if err := podGroups.AddIndexers(engine.OwnerIndex("")); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	if url := *config.Tracing.Endpoint; url != "" {
		if c.tracer, err = tracing.New(context.Background(), url); err != nil {
			return nil, fmt.Errorf("tracing.endpoint %s: %w", url, err)
		}
	}
	core, err := frameworks.New(clients.Kube, clients.Lockstep, podGroups, config, c.tracer)
	if err != nil {
		return nil, fmt.Errorf("making the core of Frameworks: %w", err)
	}
	if c.frameworks, err = core.AddTo(c.engine); err != nil {
		return nil, fmt.Errorf("adding the core of Frameworks: %w", err)
	}
	c.start = append(c.start, core.Start)
	if *config.VolcanoJobs.Enabled {
		if err := c.addJobs(clients, podGroups, config); err != nil {
			return nil, err
		}
	}
	if *config.KubeflowJobs.Enabled {
		if err := c.addKubeflowJobs(clients, podGroups, config); err != nil {
			return nil, err
		}
	}
	c.start = append(c.start, c.podGroupFactory.StartWithContext)
	return c, nil
}

// NewPodGroupFactory makes a factory of the informer of all PodGroups in some namespaces.
func NewPodGroupFactory(clients Clients, namespaces informing.Namespaces) externalversions.SharedInformerFactory {
	factory := externalversions.NewSharedInformerFactory(clients.Lockstep, 0)
	factory.InformerFor(&schedulingv1alpha1.PodGroup{}, func(client versioned.Interface, _ time.Duration) cache.SharedIndexInformer {
		return namespaces.Informer(&schedulingv1alpha1.PodGroup{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(client, client.SchedulingV1alpha1().PodGroups(namespace), informing.WantCurrent)
		})
	})
	return factory
}

// addJobs adds Volcano Jobs to the engine.
func (c *Controller) addJobs(clients Clients, podGroups cache.SharedIndexInformer, config *configv1alpha1.ControllerConfiguration) error {
	core, err := volcanojobs.New(clients, podGroups, config)
	if err != nil {
		return fmt.Errorf("making the core of Volcano Jobs: %w", err)
	}
	if c.jobs, err = core.AddTo(c.engine); err != nil {
		return fmt.Errorf("adding the core of Volcano Jobs: %w", err)
	}
	c.start = append(c.start, core.Start)
	return nil
}

// addKubeflowJobs adds training jobs of Kubeflow to the engine.
func (c *Controller) addKubeflowJobs(clients Clients, podGroups cache.SharedIndexInformer, config *configv1alpha1.ControllerConfiguration) error {
	cores, err := kubeflowjobs.New(clients, podGroups, config)
	if err != nil {
		return fmt.Errorf("making the cores of Kubeflow's jobs: %w", err)
	}
	if c.kubeflowJobs, err = cores.AddTo(c.engine); err != nil {
		return err
	}
	c.start = append(c.start, cores.Start)
	return nil
}

// PodGroupFactory returns the factory with the informer of all PodGroups, which the PodGroup controller uses, too. Run
// starts the informer.
func (c *Controller) PodGroupFactory() externalversions.SharedInformerFactory {
	return c.podGroupFactory
}

// Ready reports whether the caches are filled and Frameworks are being synced.
func (c *Controller) Ready() bool { return c.engine.Ready() }

// Longest returns the object with the sync that has been running for the longest time, and for how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.engine.Longest() }

// Run syncs Frameworks until ctx ends, and returns when the syncs that have begun are done. Call it once.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("controller"))
	for _, start := range c.start {
		start(ctx)
	}
	c.engine.Run(ctx)
	return nil
}

// SendLastSpans sends the tracing spans that are left after Run has returned. That takes at most lastSpans. A leader
// releases its lease before it calls SendLastSpans.
func (c *Controller) SendLastSpans(ctx context.Context) {
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
	defer cancel()
	if err := c.tracer.Close(soon); err != nil {
		klog.FromContext(ctx).Error(err, "Traces are not complete")
	}
}
