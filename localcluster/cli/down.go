// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

func newDown() *cobra.Command {
	var dir string
	var keepLogs bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a cluster and remove all traces of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := layoutOf(dir)
			if err != nil {
				return err
			}
			if err := supervisor.Down(cmd.Context(), layout, keepLogs); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "no cluster is left in %s\n", layout.Dir)
			return nil
		},
	}
	dirFlag(cmd, &dir)
	cmd.Flags().BoolVar(&keepLogs, "keep-logs", false, "leave the logs of the components in the directory")
	return cmd
}
