// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMirroredFileIsUnchanged fails when the scheduler's private cycle changes,
// which cycle.go and binding.go imitate. Compare them with the new version then, and
// update the version that cycle.go names and the checksum here.
func TestMirroredFileIsUnchanged(t *testing.T) {
	const want = "f433bed1da8233b52b85879e75f91c9b3d49ad1e8b1f995dc39af98d24e314b0"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "pkg", "scheduler", "schedule_one.go")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("schedule_one.go of k8s.io/kubernetes changed: its SHA-256 is %s; compare cycle.go and binding.go with it", got)
	}
}
