// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

// This file is app.Setup of k8s.io/kubernetes v1.37.1, in cmd/kube-scheduler/app/server.go, with four differences: the
// default configuration, which app.Setup does not take; additional scheduler names; resources that the API server does
// not serve; and informers made with kube.NewInformerFactory. setup_test.go fails when the original changes; then
// compare the two again and update the checksum there.

import (
	"context"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// Cluster adapts a scheduler to its API server.
type Cluster interface {
	// FillIn adds informers for resources that the API server does not serve. It is called before any other informer is
	// requested from the factory.
	FillIn(informers.SharedInformerFactory)
	// TellPods changes profiles; see package served.
	TellPods(kube.Profiles)
}

// Configuration returns what runs without --config: kube-scheduler's default, with another schedulerName and the
// plugin.
func (p *Program) Configuration() (*kubeschedulerconfig.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("making the default configuration: %w", err)
	}
	profile := &cfg.Profiles[0]
	profile.SchedulerName = p.defaults.Name
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled,
		kubeschedulerconfig.Plugin{Name: p.defaults.Plugin})
	cfg.ClientConnection.QPS = p.defaults.QPS
	cfg.ClientConnection.Burst = p.defaults.Burst
	cfg.LeaderElection.ResourceName = p.defaults.Name
	cfg.LeaderElection.ResourceNamespace = p.defaults.LeaseNamespace
	// With a kubeconfig the program runs by hand, as the only scheduler.
	cfg.LeaderElection.LeaderElect = p.opts.Deprecated.Kubeconfig == "" && p.opts.Master == ""
	return cfg, nil
}

// SetUp creates the scheduler that the command line describes. Call it after Check has returned no error.
func (p *Program) SetUp(ctx context.Context, cluster Cluster) (*Instance, error) {
	name, err := cache.NewInformerName(p.defaults.Name)
	if err != nil {
		return nil, fmt.Errorf("naming informers: %w", err)
	}
	cfg, err := p.Configuration()
	if err != nil {
		return nil, err
	}
	p.opts.ComponentConfig = cfg
	if errs := p.opts.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	c, err := p.opts.Config(ctx)
	if err != nil {
		return nil, err
	}
	c.InformerFactory = kube.NewInformerFactory(c.Client, name)
	if err := fenceWrites(c); err != nil {
		return nil, err
	}
	cc := c.Complete()

	all, err := kube.Profiles(cc.ComponentConfig.Profiles).Also(p.defaults.Plugin, p.also)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", alsoServe, err)
	}
	cc.ComponentConfig.Profiles = all

	cluster.FillIn(cc.InformerFactory)
	cluster.TellPods(cc.ComponentConfig.Profiles)

	registry := make(runtime.Registry)
	if err := registry.Register(p.defaults.Plugin, p.defaults.New); err != nil {
		return nil, fmt.Errorf("registering plugin %s: %w", p.defaults.Plugin, err)
	}
	var completed []kubeschedulerconfig.KubeSchedulerProfile
	sched, err := scheduler.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory, cc.EventBroadcaster.NewRecorder,
		scheduler.WithComponentConfigVersion(cc.ComponentConfig.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(cc.KubeConfig),
		scheduler.WithProfiles(cc.ComponentConfig.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cc.ComponentConfig.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodMaxBackoffSeconds(cc.ComponentConfig.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cc.ComponentConfig.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		scheduler.WithExtenders(cc.ComponentConfig.Extenders...),
		scheduler.WithParallelism(cc.ComponentConfig.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(profile kubeschedulerconfig.KubeSchedulerProfile) {
			completed = append(completed, profile)
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), p.opts.WriteConfigTo, &cc.ComponentConfig, completed); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return instance(p, &cc, sched)
}
