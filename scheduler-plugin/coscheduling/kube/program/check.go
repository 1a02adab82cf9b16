// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// Check returns an error if the flags or the file of --config are invalid, as far as that can be seen without a
// cluster. A configuration in which no profile enables the plugin is invalid, too: the program would be a plain
// kube-scheduler. Call Check after SetGates.
func (p *Program) Check() error {
	cfg, err := p.asked()
	if err != nil {
		return err
	}
	// ApplyLeaderElectionTo sets what is validated below.
	p.opts.ApplyLeaderElectionTo(cfg)
	if errs := p.opts.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	if !kube.Profiles(cfg.Profiles).Attachable(p.defaults.Plugin) {
		return fmt.Errorf("%s: no profile enables the plugin %s: add it to plugins.multiPoint.enabled of one in profiles, and do not disable it under plugins.preEnqueue",
			p.opts.ConfigFile, p.defaults.Plugin)
	}
	if _, err := kube.Profiles(cfg.Profiles).Also(p.defaults.Plugin, p.also); err != nil {
		return fmt.Errorf("--%s: %w", alsoServe, err)
	}
	for _, profile := range cfg.Profiles {
		for _, config := range profile.PluginConfig {
			if config.Name != p.defaults.Plugin {
				continue
			}
			if err := p.defaults.CheckArgs(config.Args); err != nil {
				return err
			}
		}
	}
	return nil
}

// asked returns the configuration of --config or, without --config, the default one. The defaults may change later,
// depending on what the API server serves; this does not affect the errors that Check finds.
func (p *Program) asked() (*kubeschedulerconfig.KubeSchedulerConfiguration, error) {
	if p.opts.ConfigFile != "" {
		return options.LoadConfigFromFile(klog.Background(), p.opts.ConfigFile)
	}
	cfg, err := p.Configuration()
	if err == nil {
		p.opts.ComponentConfig = cfg
		p.opts.ApplyDeprecated()
	}
	return cfg, err
}
