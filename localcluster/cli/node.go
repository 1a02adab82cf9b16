// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

func newNode() *cobra.Command {
	return &cobra.Command{
		Use:    supervisor.NodeCommand + " PLAN",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return realnode.Init(args[0])
		},
	}
}

func newReap() *cobra.Command {
	return &cobra.Command{
		Use:    supervisor.ReapCommand + " DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return supervisor.Reap(args[0])
		},
	}
}
