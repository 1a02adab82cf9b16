// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

func newStatus() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what of a cluster runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := layoutOf(dir)
			if err != nil {
				return err
			}
			return status(cmd.Context(), cmd.OutOrStdout(), layout)
		},
	}
	dirFlag(cmd, &dir)
	return cmd
}

func status(ctx context.Context, out io.Writer, layout cluster.Layout) error {
	state, err := supervisor.ReadState(layout)
	if err != nil {
		return err
	}
	running, err := supervisor.Running(layout)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("the cluster in %s was killed: remove the rest by `lockstep-local down --dir %s`, or start it anew by up", layout.Dir, layout.Dir)
	}
	fmt.Fprintf(out, "cluster %s: %s for %s, supervisor %d\n", layout.Dir, state.Phase, time.Since(state.Started).Round(time.Second), state.PID)
	fmt.Fprintf(out, "kubeconfig %s, server %s\n", layout.Kubeconfig(), state.Server)
	fmt.Fprintf(out, "%s\n\n", describeNodes(ctx, layout))

	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tSTATE\tFOR\tPID\tRESTARTS\tADDRESS")
	for _, p := range state.Programs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", p.Name, p.State, time.Since(p.Since).Round(time.Second), p.PID, p.Restarts, state.Address[p.Name])
	}
	return table.Flush()
}

// describeNodes counts the nodes that are ready, as the API server knows them.
func describeNodes(ctx context.Context, layout cluster.Layout) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig())
	if err != nil {
		return fmt.Sprintf("nodes unknown: %v", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Sprintf("nodes unknown: %v", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("nodes unknown: %v", err)
	}
	ready := 0
	for i := range nodes.Items {
		if supervisor.IsReady(&nodes.Items[i]) {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d nodes ready", ready, len(nodes.Items))
}
