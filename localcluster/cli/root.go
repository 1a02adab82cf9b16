// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of lockstep-local.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/interrupt"
	"github.com/lockstep-k8s/lockstep/internal/statedir"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

// Main runs lockstep-local and returns its exit code: 0, or 1 after one line on stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, cancel := interrupt.Context()
	defer cancel()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; nothing was left behind")
	}
	fmt.Fprintf(stderr, "lockstep-local: %v\n", err)
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "lockstep-local",
		Short: "A real Kubernetes on one machine, with Lockstep in it",
		Long: `lockstep-local runs a real Kubernetes on this machine: etcd, kube-apiserver and
kube-controller-manager, with simulated nodes, a node that runs containers, or both. All of it is
built from Go modules on first use; no container engine and no image registry is needed.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newUp(), newDown(), newStatus(), newLogs(), newLoadImage(), newBuild(), newVersions())
	root.AddCommand(newSupervise(), newNode(), newReap())
	return root
}

// dirFlag adds --dir to a command.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "directory of the cluster (default $XDG_STATE_HOME/lockstep-local/default or ~/.local/state/lockstep-local/default)")
}

// layoutOf makes the value of --dir absolute, or finds the default.
func layoutOf(dir string) (cluster.Layout, error) {
	if dir == "" {
		var err error
		if dir, err = statedir.Default("default"); err != nil {
			return cluster.Layout{}, err
		}
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return cluster.Layout{}, fmt.Errorf("--dir: %w", err)
	}
	return cluster.Layout{Dir: absolute}, nil
}

func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use:    supervisor.SuperviseCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// `up` reads what is written to stdout, and may be gone: that must not kill.
			signal.Ignore(syscall.SIGPIPE)
			return supervisor.Run(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}
