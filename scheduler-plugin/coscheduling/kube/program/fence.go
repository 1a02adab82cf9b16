// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"github.com/lockstep-k8s/lockstep/internal/leading"
)

// fenceWrites keeps a former leader from binding and evicting Pods. This is needed because kube-scheduler goes on
// scheduling while it tries to renew its lease. Clients that only watch or write events are not changed.
func fenceWrites(c *config.Config) error {
	if c.LeaderElection == nil {
		return nil
	}
	fence := leading.NewFence(c.LeaderElection.LeaseDuration)
	c.LeaderElection.Lock = fence.Lock(c.LeaderElection.Lock)
	c.KubeConfig = rest.CopyConfig(c.KubeConfig)
	c.KubeConfig.Wrap(fence.Wrap)
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c.KubeConfig), "scheduler"))
	if err != nil {
		return fmt.Errorf("making the client of a leader: %w", err)
	}
	c.Client = client
	return nil
}
