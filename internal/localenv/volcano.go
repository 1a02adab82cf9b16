// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/lockstep-k8s/lockstep/manifests"
)

// InstallVolcanoJobs has the API server serve Volcano's Jobs and Commands, and gives
// lockstep-controller the rights that it needs for them. It waits until both are served, for
// as long as kubectl waits by itself.
func (c *Cluster) InstallVolcanoJobs(ctx context.Context) error {
	files, err := fs.Glob(manifests.FS, "volcano/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		manifest, err := manifests.FS.ReadFile(file)
		if err != nil {
			return err
		}
		if out, err := c.KubectlApply(ctx, "default", string(manifest)); err != nil {
			return fmt.Errorf("applying %s: %w: %s", file, err, out)
		}
	}
	if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh", "crd/commands.bus.volcano.sh"); err != nil {
		return fmt.Errorf("waiting for the kinds of Volcano: %w: %s", err, out)
	}
	return nil
}

// WithVolcanoJobs are options of a controller that runs Volcano Jobs. config is more of its
// configuration file; it may be empty.
func WithVolcanoJobs(config string) ControllerOptions {
	return ControllerOptions{Config: "volcanoJobs: {enabled: true}\n" + config}
}
