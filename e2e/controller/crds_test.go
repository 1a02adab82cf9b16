//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// crds are the names of Lockstep's CRDs.
var crds = []string{"frameworks.frameworkcontroller.microsoft.com", "podgroups.scheduling.lockstep.dev"}

// TestInstallCRDs starts the controller on an API server that does not know
// Frameworks.
func TestInstallCRDs(t *testing.T) {
	if out, err := cluster.Kubectl(t.Context(), append([]string{"delete", "crd", "--timeout=2m"}, crds...)...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Its service account may not; what is missing has to be said.
	refused := cluster.StartController(t, localenv.ControllerOptions{Args: []string{"--install-crds"}})
	testbed.Eventually(t, "the controller to give up", func(context.Context) (bool, string, error) {
		return refused.Ended(), refused.Log(t), nil
	})
	if log := refused.Log(t); !strings.Contains(log, "--install-crds: applying "+crds[0]) || !strings.Contains(log, "forbidden") {
		t.Errorf("it does not say that it may not install CRDs:\n%s", log)
	}
	// Without the flag it waits for them.
	waits := cluster.StartController(t, localenv.ControllerOptions{Config: "crdEstablishedCheckTimeoutSec: 300\n"})
	waits.WaitLog(t, "the API server does not serve frameworks of frameworkcontroller.microsoft.com/v1")
	if waits.Ended() {
		t.Error("the controller does not wait for the CRDs")
	}
	startWithCRDs(t)
	waits.WaitReady(t)
	waits.Kill() // two without an election would be one too many
	wantFrameworksToRun(t)
}

// foreignCRD is what FrameworkController installs for itself, on the whole, after
// somebody has changed it.
const foreignCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: frameworks.frameworkcontroller.microsoft.com}
spec:
  group: frameworkcontroller.microsoft.com
  names: {plural: frameworks, kind: Framework}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Owner, type: string, jsonPath: .metadata.labels.owner}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestForeignCRDIsReplaced starts the controller where FrameworkController has run.
func TestForeignCRDIsReplaced(t *testing.T) {
	if out, err := cluster.Kubectl(t.Context(), "delete", "crd", "--timeout=2m", crds[0]); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := cluster.KubectlApply(t.Context(), "default", foreignCRD); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantRefused(t, "the CRD "+crds[0]+" has no status subresource")
	startWithCRDs(t)
	for path, want := range map[string]string{
		"{.spec.versions[*].name}":                               "v1",
		"{.spec.versions[0].subresources}":                       `{"status":{}}`,
		"{.spec.versions[0].additionalPrinterColumns[0].name}":   "State",
		"{.spec.versions[0].schema.openAPIV3Schema.required[*]}": "spec",
	} {
		if got, err := cluster.Kubectl(t.Context(), "get", "crd", crds[0], "-o", "jsonpath="+path); err != nil || got != want {
			t.Errorf("%s of the CRD: got %s (%v), want %s", path, got, err, want)
		}
	}
	wantFrameworksToRun(t)
}

// TestOlderCRDIsReplaced starts the controller after an upgrade that has left out
// the CRDs.
func TestOlderCRDIsReplaced(t *testing.T) {
	const gang = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/attemptStatus/properties/gang"
	if out, err := cluster.Kubectl(t.Context(), "patch", "crd", crds[0], "--type=json", "-p", `[{"op": "remove", "path": "`+gang+`"}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantRefused(t, "the CRD "+crds[0]+" is older than this program: it has no field status.attemptStatus.gang")
	startWithCRDs(t)
	wantFrameworksToRun(t)
}

// wantRefused starts the controller and wants it to end with a line that says what
// is wrong and what to do about it.
func wantRefused(t *testing.T, problem string) {
	t.Helper()
	refused := cluster.StartController(t, localenv.ControllerOptions{Config: "crdEstablishedCheckTimeoutSec: 10\n"})
	refused.WaitLog(t, problem)
	testbed.Eventually(t, "the controller to give up", func(context.Context) (bool, string, error) {
		return refused.Ended(), refused.Log(t), nil
	})
	lines := strings.Split(strings.TrimSpace(refused.Log(t)), "\n")
	last := lines[len(lines)-1]
	for _, want := range []string{problem, "apply manifests/crds", "--install-crds"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last line does not say %q: %s", want, last)
		}
	}
}

// startWithCRDs starts a controller that installs the CRDs.
func startWithCRDs(t *testing.T) {
	t.Helper()
	cluster.StartController(t, localenv.ControllerOptions{Kubeconfig: cluster.Kubeconfig, Args: []string{"--install-crds"}}).WaitReady(t)
}

func wantFrameworksToRun(t *testing.T) {
	t.Helper()
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("first").Gang().Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj()
	cluster.CreateFramework(t, namespace, fw)
	wantEnd(t, namespace, fw.Name, end{TasksSucceeded: 2, TasksTotal: 2})
}
