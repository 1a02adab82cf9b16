// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// SchedulerOptions say how a lockstep-scheduler is started.
type SchedulerOptions struct {
	// Args are the arguments of Coscheduling as lines of YAML; empty means the defaults.
	Args string
	// AlsoServes are further scheduler names to serve.
	AlsoServes []string
	// Kubeconfig is the path of the kubeconfig that the scheduler uses. Empty means the rights of its service account,
	// as in the manifests.
	Kubeconfig string
	// Elected lets the scheduler wait until it leads, by the Lease of manifests/scheduler.
	Elected bool
	// Program is the path of another lockstep-scheduler than the one in PATH.
	Program string
	// Address is the host:port on which the scheduler serves health and metrics over TLS. Empty means that it does not
	// serve them.
	Address string
	// Flags are further flags.
	Flags []string
}

// StartScheduler starts lockstep-scheduler with the rights of its service account, as lockstep-local does, and returns
// at once. args are the arguments of Coscheduling as lines of YAML; empty means the defaults. `more` are further
// scheduler names; this scheduler also places Pods that have one of these. The scheduler is killed when ctx ends.
func (c *Cluster) StartScheduler(ctx context.Context, args string, more ...string) (*Process, error) {
	return c.StartSchedulerWith(ctx, SchedulerOptions{Args: args, AlsoServes: more})
}

// StartSchedulerWith is StartScheduler with options.
func (c *Cluster) StartSchedulerWith(ctx context.Context, o SchedulerOptions) (*Process, error) {
	config, err := os.ReadFile(filepath.Join(c.Dir, "config", "scheduler.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the scheduler: %w", err)
	}
	account := filepath.Join(c.Dir, "kubeconfigs", "scheduler")
	text := string(config)
	if o.Kubeconfig != "" {
		text = strings.Replace(text, account, o.Kubeconfig, 1)
	}
	if o.Elected {
		text = strings.Replace(text, "leaderElect: false", "leaderElect: true\n  resourceNamespace: lockstep-system\n  resourceName: lockstep-scheduler", 1)
	}
	dir, err := os.MkdirTemp(c.Dir, "scheduler-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a scheduler: %w", err)
	}
	pluginConfig := ""
	if o.Args != "" {
		pluginConfig = "  pluginConfig:\n  - name: Coscheduling\n    args:\n"
		for line := range strings.Lines(o.Args) {
			pluginConfig += "      " + line
		}
		pluginConfig += "\n"
	}
	// The last profile enables the plugin.
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text+pluginConfig), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of a scheduler: %w", err)
	}
	serving := []string{"--secure-port=0"}
	if o.Address != "" {
		host, port, err := net.SplitHostPort(o.Address)
		if err != nil {
			return nil, fmt.Errorf("reading the address of a scheduler: %w", err)
		}
		serving = []string{"--bind-address=" + host, "--secure-port=" + port, "--cert-dir=" + dir}
	}
	args := append(serving, "--config="+path, "--also-serve="+strings.Join(o.AlsoServes, ","),
		"--authentication-kubeconfig="+account, "--authorization-kubeconfig="+account)
	return Start(ctx, filepath.Join(dir, "log"), cmp.Or(o.Program, "lockstep-scheduler"), append(args, o.Flags...)...)
}
