//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestCrashesCostNoPod kills the controller again and again while gangs start. What it
// has created and not recorded is adopted by the next one, so no Pod is made twice.
func TestCrashesCostNoPod(t *testing.T) {
	const frameworks, tasks, kills = 30, 8, 10
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same moments again: -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	for i := range frameworks {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(fmt.Sprintf("gang-%d", i)).Gang().Role("worker", tasks, jobs.RunForever()).Obj())
	}
	for range kills {
		controller := cluster.StartController(t, localenv.ControllerOptions{})
		controller.WaitReady(t)
		pause(t, random, 1500*time.Millisecond)
		controller.Kill()
	}
	cluster.StartController(t, localenv.ControllerOptions{})
	for i := range frameworks {
		fw := cluster.WaitFramework(t, namespace, fmt.Sprintf("gang-%d", i), "run with all tasks", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
		})
		if retries := fw.Status.RetryPolicyStatus.TotalRetriedCount; retries != 0 {
			t.Errorf("%s was retried %d times", fw.Name, retries)
		}
	}
	recording.CheckQuiet(t)
	if got, want := recording.Pods(), frameworks*tasks; got != want {
		t.Errorf("%d Pods were made, want %d: each once", got, want)
	}
}
