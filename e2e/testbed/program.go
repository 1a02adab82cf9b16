// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Program is a running program of a cluster.
type Program struct {
	PID int
	// Address is where it serves, host:port; empty if it serves nothing.
	Address string
}

// Program finds a program of the cluster by the name of its component.
func (c *Cluster) Program(ctx context.Context, component string) (Program, error) {
	out, err := exec.CommandContext(ctx, "lockstep-local", "status", "--dir", c.Dir).Output()
	if err != nil {
		return Program{}, fmt.Errorf("lockstep-local status: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		// COMPONENT STATE FOR PID RESTARTS ADDRESS
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != component {
			continue
		}
		pid, err := strconv.Atoi(fields[3])
		if err != nil || pid <= 1 {
			return Program{}, fmt.Errorf("%s does not run: %s", component, line)
		}
		program := Program{PID: pid}
		if len(fields) > 5 {
			program.Address = fields[5]
		}
		return program, nil
	}
	return Program{}, fmt.Errorf("no component %s in:\n%s", component, out)
}

// Kill ends a program of the cluster with SIGKILL, as a crash would. The cluster
// starts it again.
func (c *Cluster) Kill(ctx context.Context, component string) error {
	program, err := c.Program(ctx, component)
	if err != nil {
		return err
	}
	return syscall.Kill(program.PID, syscall.SIGKILL)
}
