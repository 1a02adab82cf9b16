// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

func newBuild() *cobra.Command {
	var kubernetesVersion string
	var realNode, simulatedNodes, downloadOnly bool
	programs := &programFlags{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the components into the cache, without starting anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			release, err := components.FindRelease(kubernetesVersion)
			if err != nil {
				return fmt.Errorf("--kubernetes-version %w", err)
			}
			wanted := components.ControlPlane(release)
			if simulatedNodes {
				wanted = append(wanted, components.SimulatedNodes()...)
			}
			if realNode {
				if err := cluster.CheckRealNodeRelease(release); err != nil {
					return err
				}
				wanted = append(wanted, components.RealNode()...)
			}
			if downloadOnly && !programs.installed {
				return errors.New("--download-only is given without --installed: nothing is downloaded then")
			}
			programs.downloadOnly = downloadOnly
			binaries, err := programs.ensure(cmd, wanted)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(binaries)) {
				fmt.Fprintln(cmd.OutOrStdout(), binaries[name])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&realNode, "real-node", false, "also build what a node that runs containers needs")
	cmd.Flags().BoolVar(&simulatedNodes, "simulated-nodes", true, "also build what simulated nodes need")
	cmd.Flags().BoolVar(&downloadOnly, "download-only", false, "with --installed, download what is published, and compile nothing; a later build compiles the rest")
	kubernetesVersionFlag(cmd, &kubernetesVersion)
	programs.add(cmd)
	return cmd
}
