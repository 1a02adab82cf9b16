// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/served"
)

const (
	// defaultQPS and defaultBurst let a gang of a thousand be bound in about a
	// second. kube-scheduler's 50 and 100 make it wait for its own client most of
	// that time.
	defaultQPS   = 1000
	defaultBurst = 2000

	// leaseNamespace and programName are the leader's lease without --config, not
	// kube-scheduler's in kube-system, for which this program would contend with
	// the cluster's own scheduler.
	leaseNamespace = "lockstep-system"
)

// setFlagDefaults shows the defaults of this program in its help where they are
// not kube-scheduler's.
func setFlagDefaults(opts *options.Options) {
	for set, flags := range map[string]map[string]string{
		"deprecated":      {"kube-api-qps": fmt.Sprint(defaultQPS), "kube-api-burst": fmt.Sprint(defaultBurst)},
		"leader election": {"leader-elect-resource-name": programName, "leader-elect-resource-namespace": leaseNamespace},
	} {
		for name, value := range flags {
			if flag := opts.Flags.FlagSet(set).Lookup(name); flag != nil {
				flag.DefValue = value
			}
		}
	}
}

// defaultConfiguration is what runs without --config: kube-scheduler's default,
// for another schedulerName and with the plugin.
func defaultConfiguration(opts *options.Options) (*kubeschedulerconfig.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("making the default configuration: %w", err)
	}
	profile := &cfg.Profiles[0]
	profile.SchedulerName = programName
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled,
		kubeschedulerconfig.Plugin{Name: coscheduling.Name})
	cfg.ClientConnection.QPS = defaultQPS
	cfg.ClientConnection.Burst = defaultBurst
	cfg.LeaderElection.ResourceName = programName
	cfg.LeaderElection.ResourceNamespace = leaseNamespace
	// Whoever names a kubeconfig runs one scheduler by hand.
	cfg.LeaderElection.LeaderElect = opts.Deprecated.Kubeconfig == "" && opts.Master == ""
	return cfg, nil
}

// setUp makes the scheduler that the options describe, for an API server that serves
// apis. It is kube-scheduler's app.Setup but for the default configuration, which
// that one can't be given, and for what the API server does not serve.
func setUp(ctx context.Context, opts *options.Options, apis *served.APIs) (*config.CompletedConfig, *scheduler.Scheduler, error) {
	cfg, err := defaultConfiguration(opts)
	if err != nil {
		return nil, nil, err
	}
	opts.ComponentConfig = cfg
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	c, err := opts.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	cc := c.Complete()
	if err := checkPlugin(&cc.ComponentConfig); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", opts.ConfigFile, err)
	}

	apis.FillIn(cc.InformerFactory)
	apis.TellPods(cc.ComponentConfig.Profiles)

	registry := make(runtime.Registry)
	if err := registry.Register(coscheduling.Name, coscheduling.New); err != nil {
		return nil, nil, fmt.Errorf("registering plugin %s: %w", coscheduling.Name, err)
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
		return nil, nil, fmt.Errorf("making the scheduler: %w", err)
	}
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &cc.ComponentConfig, completed); err != nil {
		return nil, nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return &cc, sched, nil
}

// checkPlugin fails if no profile enables the plugin: the program would be a
// plain kube-scheduler, which nobody means who starts it.
func checkPlugin(cfg *kubeschedulerconfig.KubeSchedulerConfiguration) error {
	for i := range cfg.Profiles {
		plugins := cfg.Profiles[i].Plugins
		if plugins == nil {
			continue
		}
		for _, set := range []kubeschedulerconfig.PluginSet{plugins.MultiPoint, plugins.PreEnqueue} {
			for _, plugin := range set.Enabled {
				if plugin.Name == coscheduling.Name {
					return nil
				}
			}
		}
	}
	return errors.New("no profile enables the plugin " + coscheduling.Name +
		": add it to plugins.multiPoint.enabled of one in profiles")
}
