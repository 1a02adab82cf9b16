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

// TestAFolderThatOthersMayWriteIsNotUsed: kubectl would be run from it.
func TestAFolderThatOthersMayWriteIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(dir, "kubeconfig"); err == nil || !strings.Contains(err.Error(), "may be written by others") {
		t.Errorf("error %v", err)
	}
}

// TestAClusterThatRunsIsLeftAlone, as that which the demo was told to keep.
func TestAClusterThatRunsIsLeftAlone(t *testing.T) {
	calls := brokenLocal(t)
	running := fakeCluster(t, 7, "Running")
	stop := "lockstep-local down --dir " + running.Dir
	if _, err := Up(t.Context(), Options{Dir: running.Dir}); err == nil || !strings.Contains(err.Error(), stop) {
		t.Errorf("a second cluster in its folder: %v, want an error that says %q", err, stop)
	}
	if _, err := Attach(running.Dir, "kubeconfig"); err == nil || !strings.Contains(err.Error(), stop) {
		t.Errorf("what runs in another cluster, with the folder of this one: %v, want an error that says %q", err, stop)
	}
	if got, err := os.ReadFile(calls); err == nil {
		t.Errorf("lockstep-local was called:\n%s", got)
	}
}

// TestAClusterThatWasFasterIsLeftAlone: two are started in a folder, and the other one has its lock when this one
// wants it.
func TestAClusterThatWasFasterIsLeftAlone(t *testing.T) {
	calls := brokenLocal(t)
	faster := fakeCluster(t, 7, "Running")
	lock := filepath.Join(faster.Dir, "lock")
	aside := lock + ".held"
	if err := os.Rename(lock, aside); err != nil {
		t.Fatal(err)
	}
	// It comes between the look and the start.
	script := "#!/bin/sh\necho \"$@\" >> " + calls + "\n[ \"$1\" != up ] || { mv " + aside + " " + lock + "; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(calls), "lockstep-local"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), Options{Dir: faster.Dir}); err == nil || !strings.Contains(err.Error(), "a cluster runs in") {
		t.Errorf("a second cluster in its folder: %v", err)
	}
	got, err := os.ReadFile(calls)
	if want := "down --dir " + faster.Dir + "\nup --simulated-nodes 0 --dir " + faster.Dir + "\n"; string(got) != want {
		t.Errorf("lockstep-local was called (%v)\n%s\nwant\n%s", err, got, want)
	}
}
