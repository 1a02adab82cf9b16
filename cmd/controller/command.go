// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/logging"
)

const programName = "lockstep-controller"

// flags are the command line.
type flags struct {
	kubeconfig  string
	configFile  string
	installCRDs bool
	onlyGroups  bool
	serving     *servingOptions
	logging     *logsapi.LoggingConfiguration
}

func newCommand() *cobra.Command {
	f := &flags{logging: logsapi.NewLoggingConfiguration(), serving: &servingOptions{}}
	f.logging.Verbosity = 2 // FrameworkController's default.
	cmd := &cobra.Command{
		Use:   programName,
		Short: "Run Frameworks: distributed jobs whose attempts start whole or not at all",
		Long: `lockstep-controller turns each Framework (frameworkcontroller.microsoft.com/v1)
into attempts of Pods, retries, completes and rescales them, and keeps the phase
and the counters of every PodGroup (scheduling.lockstep.dev/v1alpha1). It makes PodGroups
for Jobs, JobSets and LeaderWorkerSets in namespaces with the label
scheduling.lockstep.dev/gang-by-owner. If the
configuration switches them on, it runs Volcano Jobs (batch.volcano.sh/v1alpha1), too,
and training jobs of Kubeflow: TFJobs, PyTorchJobs, XGBoostJobs, PaddleJobs and JAXJobs
(kubeflow.org/v1, and v1alpha2 of TFJobs), and MPIJobs (kubeflow.org/v2beta1).

A configuration file of FrameworkController is accepted as it is.`,
		Args:    cobra.NoArgs,
		Version: buildinfo.Version(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logging.Set(f.logging, nil); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			config, err := f.configuration()
			if err != nil {
				return err
			}
			return run(klog.NewContext(ctx, klog.Background()), f, config)
		},
		SilenceUsage: true,
	}
	cmd.SetContext(context.Background())
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the API server; overrides kubeConfigFilePath and kubeApiServerAddress of --config")
	set.StringVar(&f.configFile, "config", "", "configuration file, YAML; without it, all defaults")
	set.BoolVar(&f.installCRDs, "install-crds", false, "create or update the CRDs at the start, and create missing CRDs of Volcano Jobs and Kubeflow's jobs if these are switched on; needs the right to write CRDs")
	set.BoolVar(&f.onlyGroups, "podgroups-only", false, "run no Frameworks and no jobs; only make PodGroups for Jobs, JobSets and LeaderWorkerSets in namespaces with the label scheduling.lockstep.dev/gang-by-owner, and keep the status of all PodGroups")
	f.serving.addFlags(set)
	logsapi.AddFlags(f.logging, set)
	return cmd
}

// configuration reads the file and completes it.
func (f *flags) configuration() (*configv1alpha1.ControllerConfiguration, error) {
	config := &configv1alpha1.ControllerConfiguration{}
	if f.configFile != "" {
		data, err := os.ReadFile(f.configFile)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		if config, err = configv1alpha1.Decode(data); err != nil {
			return nil, fmt.Errorf("--config %s: %w", f.configFile, err)
		}
	}
	configv1alpha1.SetDefaults(config)
	if f.kubeconfig != "" {
		none := ""
		config.KubeConfigFilePath, config.KubeAPIServerAddress = &f.kubeconfig, &none
	}
	configv1alpha1.SetConnectionDefaults(config, os.Getenv, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	})
	configv1alpha1.SetElectionDefaults(config, os.Getenv, os.ReadFile)
	if err := configv1alpha1.Validate(config).ToAggregate(); err != nil {
		return nil, fmt.Errorf("--config %s: %w", f.configFile, err)
	}
	return config, nil
}
