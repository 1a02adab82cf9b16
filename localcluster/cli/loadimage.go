// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

func newLoadImage() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "load-image TAR",
		Short: "Bring the images of a docker or OCI tar to the real node",
		Long: `load-image brings the images of a docker or OCI tar to the real node. Pods use them with
imagePullPolicy Never or IfNotPresent, under the names that the tar gives them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := layoutOf(dir)
			if err != nil {
				return err
			}
			state, err := supervisor.ReadState(layout)
			if err != nil {
				return err
			}
			if !state.Options.RealNode {
				return fmt.Errorf("the cluster in %s has no real node: images are loaded into one made by `up --real-node`", layout.Dir)
			}
			if _, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("reading the images: %w", err)
			}
			return realnode.LoadImages(cmd.Context(), layout, args[0], cmd.OutOrStdout())
		},
	}
	dirFlag(cmd, &dir)
	return cmd
}
