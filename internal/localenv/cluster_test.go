// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// brokenLocal puts a lockstep-local into PATH that can't start a cluster. It notes
// how it is called in the file that is returned.
func brokenLocal(t *testing.T) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$@\" >> " + calls + "\n[ \"$1\" != up ]\n"
	if err := os.WriteFile(filepath.Join(dir, "lockstep-local"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

func TestAClusterThatDoesNotStartLeavesNothing(t *testing.T) {
	brokenLocal(t)
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := Up(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "lockstep-local up") {
		t.Errorf("a cluster that does not start: %v", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

func TestAFolderThatWasNamedIsCleanedByLockstepLocalAlone(t *testing.T) {
	calls := brokenLocal(t)
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Up(t.Context(), Options{Dir: dir, SimulatedNodes: 3, NodeCPU: "2", NodePods: 9, RealNode: true, RealNodeCPU: "1", KubernetesVersion: "1.36", RuntimeConfig: "a=false", FeatureGates: "B=true", Audit: true, With: "none"})
	if err == nil {
		t.Error("a cluster was started")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a file of somebody else: %v", err)
	}
	want := "down --dir " + dir + "\n" + // what an earlier run may have left
		"up --simulated-nodes 3 --node-cpu 2 --node-pods 9 --real-node --real-node-cpu 1 --kubernetes-version 1.36 --runtime-config a=false --feature-gates B=true --audit --with none --dir " + dir + "\n" +
		"down --keep-logs --dir " + dir + "\n"
	if got, err := os.ReadFile(calls); string(got) != want {
		t.Errorf("lockstep-local was called (%v)\n%s\nwant\n%s", err, got, want)
	}
}
