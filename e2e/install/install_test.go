//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
)

// documented are the commands of a section of docs/install.md.
func documented(t *testing.T, heading string) []string {
	t.Helper()
	section, err := documents.Section(repository+"/docs/install.md", heading)
	if err != nil {
		t.Fatal(err)
	}
	return documents.Commands(section)
}

// run runs a command, and tells of the Pods of Lockstep if it fails.
func run(t *testing.T, command string) string {
	t.Helper()
	out, err := cluster.Shell(t.Context(), repository, command)
	if err != nil {
		pods, _ := cluster.Kubectl(t.Context(), "-n", "lockstep-system", "describe", "pods")
		logs, _ := cluster.Kubectl(context.WithoutCancel(t.Context()), "-n", "lockstep-system", "logs", "--prefix", "--tail=20", "--selector=app.kubernetes.io/part-of=lockstep")
		t.Fatalf("%s: %v: %s\n%s\n%s", command, err, out, pods, logs)
	}
	return out
}

// TestDocumentedCommandsInstall does what the section Installing says: in the end both Deployments
// are ready, so the Pods were let in by Pod Security, run as their accounts, and found their rights.
func TestDocumentedCommandsInstall(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	for i, command := range documented(t, "Installing")[:3] {
		if i == 0 {
			// lockstep-local has applied some of it before.
			run(t, command+" --force-conflicts")
		} else {
			run(t, command+" --timeout="+testbed.Patience.String())
		}
	}
}

// TestDocumentedCommandsUninstall does what the section Uninstalling says to an installation with all that can be switched
// on: before its warning all jobs are left, in the end nothing is, and no right of a program after either.
func TestDocumentedCommandsUninstall(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	run(t, "kubectl apply --server-side --force-conflicts -k manifests/overlays/integrations")
	run(t, "kubectl apply --server-side --force-conflicts -k manifests/dashboard")
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks("default").Create(t.Context(), jobs.MakeFramework("stays").Role("worker", 1, jobs.RunForever()).Obj(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, command := range documented(t, "Uninstalling") {
		if strings.HasSuffix(command, "manifests/crds") {
			noRightsAreLeft(t)
		}
		out := run(t, command)
		if strings.HasPrefix(command, "kubectl get frameworks,") && !strings.Contains(out, "stays") {
			t.Errorf("a job is gone too soon: %s", out)
		}
	}
	noRightsAreLeft(t)
	if left := run(t, "kubectl get crd,clusterrole,namespace,flowschema -o name | grep -e lockstep-system -e lockstep-controller -e lockstep-scheduler -e lockstep.dev -e frameworkcontroller || true"); strings.TrimSpace(left) != "" {
		t.Errorf("this is left: %s", left)
	}
}

// noRightsAreLeft fails the test if an account of lockstep-system has rights, which whoever makes a namespace of that name
// would have then.
func noRightsAreLeft(t *testing.T) {
	t.Helper()
	bindings := run(t, `kubectl get clusterrolebindings,rolebindings -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.subjects[*].namespace}{"\n"}{end}'`)
	for line := range strings.Lines(bindings) {
		name, namespaces, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(namespaces, "lockstep-system") && !strings.HasPrefix(name, "lockstep-system/") {
			t.Errorf("%s grants rights to an account of lockstep-system", name)
		}
	}
}
