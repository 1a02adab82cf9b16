// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// LoadImages brings the images of a docker or OCI tar to the node of a running cluster, and
// tells their names on out.
func LoadImages(ctx context.Context, l cluster.Layout, tar string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, filepath.Join(l.Bin(), components.Ctr), importArgs(l, tar)...)
	// On success only the names matter, not the warnings about the machine.
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &complaints
	err := cmd.Run()
	if err != nil && strings.Contains(complaints.String(), "filtered out") {
		return fmt.Errorf("importing %s: it has no image for linux/%s (does its configuration name a platform?)", tar, runtime.GOARCH)
	}
	if err != nil {
		return fmt.Errorf("importing %s: %w: %s", tar, err, strings.TrimSpace(complaints.String()))
	}
	return nil
}
