// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"os/exec"
	"strings"
	"testing"
)

const (
	module = "github.com/lockstep-k8s/lockstep/"
	// inside is what this package and those in it are for, and frameworkPackage is what
	// others may use of it: the interfaces between the scheduler and its plugins.
	inside           = "k8s.io/kubernetes/"
	frameworkPackage = "k8s.io/kubernetes/pkg/scheduler/framework"
)

// others are the packages that may use kube-scheduler's inside, by their folder.
var others = map[string]string{
	"scheduler-plugin/coscheduling/kube": "this one",
	"hack/bench":                         "it measures against kube-scheduler itself",
	"internal/replay/machine":            "it makes a scheduler on an API server in memory",
}

// TestNobodyElseUsesTheInsideOfKubernetes holds that the next minor of Kubernetes touches
// this tree of packages and no other. Tests may use what they like.
func TestNobodyElseUsesTheInsideOfKubernetes(t *testing.T) {
	const format = `{{$path := .ImportPath}}{{range .Imports}}{{$path}} {{.}}{{"\n"}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("listing the imports: %v\n%s", err, out)
	}
	seen := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), module)
		path, imported, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(imported, inside) {
			continue
		}
		if isOther(path) {
			seen = true
			continue
		}
		if imported != frameworkPackage {
			t.Errorf("%s imports %s: only package kube may, and others by what it offers", path, imported)
		}
	}
	if !seen {
		t.Error("this package imports nothing of Kubernetes: the test does not look where it should")
	}
}

func isOther(path string) bool {
	for folder := range others {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// TestThisPackageKnowsNothingOfGangs holds that the plugin builds on this package and not
// the other way round.
func TestThisPackageKnowsNothingOfGangs(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("listing the dependencies: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		path, ours := strings.CutPrefix(strings.TrimSpace(line), module)
		// These are about leases and logs of any program.
		if ours && path != "internal/leading" && path != "internal/logging" && path != "scheduler-plugin/coscheduling/kube" && !strings.HasPrefix(path, "scheduler-plugin/coscheduling/kube/") {
			t.Errorf("it depends on %s", path)
		}
	}
}
