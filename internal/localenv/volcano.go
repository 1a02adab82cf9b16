// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import "context"

// InstallVolcanoJobs installs Volcano's Jobs and Commands, and gives lockstep-controller the rights for them. It waits
// until the API server serves both, for at most the default timeout of kubectl wait.
func (c *Cluster) InstallVolcanoJobs(ctx context.Context) error {
	return c.installKinds(ctx, "volcano", "crd/jobs.batch.volcano.sh", "crd/commands.bus.volcano.sh")
}

// WithVolcanoJobs returns the options of a controller that runs Volcano Jobs, including Jobs that name Volcano's
// scheduler or no scheduler. config is further configuration in YAML; it may be empty.
func WithVolcanoJobs(config string) ControllerOptions {
	return ControllerOptions{Config: "volcanoJobs: {enabled: true, schedulerNames: [lockstep-scheduler, volcano, '']}\n" + config}
}
