//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestAnAPIServerThatHasEverythingIsNotRemarkedUpon by the scheduler. What it says
// of others is in e2e/versions.
func TestAnAPIServerThatHasEverythingIsNotRemarkedUpon(t *testing.T) {
	if version := testbed.KubernetesVersion(); version != "" {
		t.Skipf("e2e/versions has what is said of %s", version)
	}
	log, err := os.ReadFile(filepath.Join(cluster.Logs(), "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("Starting Kubernetes Scheduler").Match(log) {
		t.Fatalf("the log does not tell of a start:\n%s", cluster.LogTail("scheduler", 2000))
	}
	if remark := regexp.MustCompile(`.*API server v.* does not serve.*`).Find(log); remark != nil {
		t.Errorf("it says %s", remark)
	}
}
