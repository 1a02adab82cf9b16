//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install installs Lockstep as its documents say, on a node that runs containers.
package install

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// images is where `make images` put the image tars.
var images = flag.String("images", "../../../bin/images", "folder of the image tars")

// cluster has a scheduler, and no Lockstep but its kinds and rights. TestMain sets it once.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{RealNode: true, RealNodeCPU: "2", With: "scheduler"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		return c.LoadImages(ctx, *images, "controller", "scheduler", "dashboard")
	}))
}

// section finds the first block of commands of a section, and command a line of it.
var (
	section = regexp.MustCompile("(?s)\n## Installing\n.*?```console\n(.*?)```")
	command = regexp.MustCompile(`(?m)^\$ kubectl (.*)$`)
)

// TestDocumentedCommandsInstall does what the section Installing says: in the end both Deployments
// are ready, so the Pods were let in by Pod Security, run as their accounts, and found their rights.
func TestDocumentedCommandsInstall(t *testing.T) {
	document, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	block := section.FindStringSubmatch(string(document))
	if block == nil {
		t.Fatal("docs/install.md has no commands under Installing")
	}
	commands := command.FindAllStringSubmatch(block[1], -1)
	if len(commands) != 3 {
		t.Fatalf("docs/install.md has %d commands under Installing, want 3", len(commands))
	}
	for _, found := range commands {
		args := strings.Fields(strings.ReplaceAll(found[1], "manifests/", "../../../manifests/"))
		// Nobody waits longer than this for a test.
		if strings.Contains(found[1], "rollout status") {
			args = append(args, "--timeout=45s")
		} else {
			// lockstep-local has applied some of it before.
			args = append(args, "--force-conflicts")
		}
		if out, err := cluster.Kubectl(t.Context(), args...); err != nil {
			pods, _ := cluster.Kubectl(t.Context(), "-n", "lockstep-system", "describe", "pods")
			logs, _ := cluster.Kubectl(context.WithoutCancel(t.Context()), "-n", "lockstep-system", "logs", "--prefix", "--tail=20", "--selector=app.kubernetes.io/part-of=lockstep")
			t.Fatalf("%s: %v: %s\n%s\n%s", found[0], err, out, pods, logs)
		}
	}
}
