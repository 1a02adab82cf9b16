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
	waits.WaitLog(t, "are the CRDs installed")
	if waits.Ended() {
		t.Error("the controller does not wait for the CRDs")
	}
	cluster.StartController(t, localenv.ControllerOptions{Kubeconfig: cluster.Kubeconfig, Args: []string{"--install-crds"}}).WaitReady(t)
	waits.WaitReady(t)
	waits.Kill() // two without an election would be one too many

	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("first").Gang().Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj()
	create(t, namespace, fw)
	wantEnd(t, namespace, fw.Name, end{TasksSucceeded: 2, TasksTotal: 2})
}
