// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// StartScheduler starts lockstep-scheduler as lockstep-local does, with the rights of its
// service account, and returns at once. args are the arguments of Coscheduling as lines of
// YAML, empty for the defaults. It also serves the Pods that name one of more schedulers. It is
// killed when ctx ends.
func (c *Cluster) StartScheduler(ctx context.Context, args string, more ...string) (*Process, error) {
	config, err := os.ReadFile(filepath.Join(c.Dir, "config", "scheduler.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the scheduler: %w", err)
	}
	dir, err := os.MkdirTemp(c.Dir, "scheduler-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a scheduler: %w", err)
	}
	pluginConfig := ""
	if args != "" {
		pluginConfig = "  pluginConfig:\n  - name: Coscheduling\n    args:\n"
		for line := range strings.Lines(args) {
			pluginConfig += "      " + line
		}
		pluginConfig += "\n"
	}
	// The last profile is the one that enables the plugin.
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(string(config)+pluginConfig), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of a scheduler: %w", err)
	}
	account := filepath.Join(c.Dir, "kubeconfigs", "scheduler")
	return Start(ctx, filepath.Join(dir, "log"), "lockstep-scheduler", "--config="+path, "--secure-port=0", "--also-serve="+strings.Join(more, ","),
		"--authentication-kubeconfig="+account, "--authorization-kubeconfig="+account)
}
