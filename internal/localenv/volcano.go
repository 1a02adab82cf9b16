// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import "context"

// InstallVolcanoJobs installs Volcano's Jobs and Commands, and gives lockstep-controller the rights for them. The
// call waits until both are served, for as long as kubectl waits by itself.
func (c *Cluster) InstallVolcanoJobs(ctx context.Context) error {
	return c.installKinds(ctx, "volcano", "crd/jobs.batch.volcano.sh", "crd/commands.bus.volcano.sh")
}

// WithVolcanoJobs are options of a controller that runs Volcano Jobs, including Jobs that name Volcano's scheduler or
// none. config is more of the configuration file; config may be empty.
func WithVolcanoJobs(config string) ControllerOptions {
	return ControllerOptions{Config: "volcanoJobs: {enabled: true, schedulerNames: [lockstep-scheduler, volcano, '']}\n" + config}
}
