// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
)

// ofLockstep selects the Deployments of Lockstep, whatever their namespace.
const ofLockstep = "app.kubernetes.io/part-of=lockstep"

func newVersion(s *session) *cobra.Command {
	client := false
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this program, and of Lockstep's programs in the cluster", Args: cobra.NoArgs,
		Long: `Print the version of this program, and the images of Lockstep's Deployments in the cluster, if you may list Deployments.
Other programs print their version with --version, and serve it as lockstep_build_info.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			line(s.out, "kubectl-lockstep version %s", buildinfo.Version())
			if client {
				return nil
			}
			// This program's version is the answer. That of the cluster is a help, so a failure is only noted.
			deployments, err := s.deployments(cmd.Context())
			if err != nil {
				s.note("The versions in the cluster can't be shown: %v", err)
			}
			for i := range deployments {
				for _, container := range deployments[i].Spec.Template.Spec.Containers {
					line(s.out, "%s image %s", deployments[i].Name, container.Image)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "ask no cluster")
	return cmd
}

// deployments lists those of Lockstep. It waits five seconds at most.
func (s *session) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := c.reader.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: ofLockstep})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
