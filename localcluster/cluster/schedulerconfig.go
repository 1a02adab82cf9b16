// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// SchedulerConfig is the configuration of the scheduler. It is the only one of the cluster, so
// it serves two kinds of Pods: those that name no scheduler, just as kube-scheduler would, and
// those that name lockstep-scheduler.
func (p *Plan) SchedulerConfig() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 1000
  burst: 2000
leaderElection:
  leaderElect: false
profiles:
- schedulerName: default-scheduler
- schedulerName: lockstep-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
`, p.Layout.ComponentKubeconfig(Scheduler))
}
