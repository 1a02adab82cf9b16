// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube/program"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// newCommand makes the command with kube-scheduler's flags. kube-scheduler's own command can't be used: it would run
// the scheduler without a chance to attach the plugin.
func newCommand() (*cobra.Command, error) {
	p, err := program.New(defaults)
	if err != nil {
		return nil, err
	}
	cmd := &cobra.Command{
		Use:   programName,
		Short: "kube-scheduler that places PodGroups whole or not at all",
		Long: `lockstep-scheduler is a kube-scheduler with the plugin Coscheduling: the Pods of
a PodGroup (scheduling.lockstep.dev) get their nodes together or not at all. All
other Pods are scheduled as by kube-scheduler.

Without --config it serves the schedulerName lockstep-scheduler. It then takes
the cluster from --kubeconfig, without leader election unless --leader-elect is
given; or, inside a Pod, from the Pod's service account, with leader election.
With --config it takes a KubeSchedulerConfiguration, of which at least one
profile enables Coscheduling under plugins.multiPoint.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Lookup("version").Value.String() == "true" {
				fmt.Fprintln(cmd.OutOrStdout(), programName, "version", buildinfo.Version())
				return nil
			}
			verflag.PrintAndExitIfRequested()
			return run(cmd, p)
		},
	}
	flags := p.Flags()
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *flags, columns)
	// It fails only for a flag that does not exist.
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
	return cmd, nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%s takes flags only, got %q", cmd.CommandPath(), arg)
		}
	}
	return nil
}

// run runs the scheduler until the process is asked to end.
func run(cmd *cobra.Command, p *program.Program) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := server.SetupSignalHandler()
	go func() {
		<-stop
		cancel()
	}()

	// Errors of the command line are reported before the API server is asked, which may take a minute to answer.
	gates, err := p.SetGates()
	if err != nil {
		return err
	}
	if err := p.SetLogs(); err != nil {
		return fmt.Errorf("setting up logs: %w", err)
	}
	if err := p.Check(); err != nil {
		return err
	}
	if err := configv1alpha1.ValidateNamespaces(field.NewPath("--namespaces"), p.Namespaces()).ToAggregate(); err != nil {
		return err
	}
	cliflag.PrintFlags(cmd.Flags())
	apis, err := fitGates(ctx, p, gates)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was asked to end
		}
		return err
	}
	if remark := apis.Remark(); remark != "" {
		klog.FromContext(ctx).Info(remark)
	}

	scheduler, err := p.SetUp(ctx, narrowed{apis, p.Namespaces()})
	if err != nil {
		return err
	}
	end := func(reason string) {
		klog.FromContext(ctx).Info(reason)
		cancel()
	}
	if err := coscheduling.Attach(ctx, scheduler.Scheduler, p.Namespaces(), status.ServedRegistry(), end); err != nil {
		return err
	}
	go endOnChange(ctx, end, apis, scheduler.KubeConfig)
	err = scheduler.Run(ctx)
	if ctx.Err() != nil {
		// Run ends with an error however it ends. Being asked to is none.
		return nil
	}
	return err
}
