// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

func newVersions() *cobra.Command {
	return &cobra.Command{
		Use:   "versions",
		Short: "Print the versions of Kubernetes that can be built, the newest first",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, release := range components.Releases() {
				fmt.Fprintln(cmd.OutOrStdout(), release.Minor)
			}
		},
	}
}
