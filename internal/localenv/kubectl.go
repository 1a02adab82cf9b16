// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs the cluster's kubectl as administrator, and returns its standard output and standard error together. The
// error says how kubectl exited.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, nil, args...)
}

// Shell runs a command line in a shell in a folder, with the cluster's kubectl as administrator. Shell returns standard
// output and standard error together.
func (c *Cluster) Shell(ctx context.Context, folder, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+c.Bin()+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// KubectlApply applies a manifest as `kubectl apply -f -` does.
func (c *Cluster) KubectlApply(ctx context.Context, namespace, manifest string) (string, error) {
	return c.kubectl(ctx, strings.NewReader(manifest), "apply", "--namespace", namespace, "-f", "-")
}

// KubectlReplace replaces what is there by a manifest, as `kubectl replace -f -` does.
func (c *Cluster) KubectlReplace(ctx context.Context, manifest string) (string, error) {
	return c.kubectl(ctx, strings.NewReader(manifest), "replace", "-f", "-")
}

func (c *Cluster) kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin(), "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}
