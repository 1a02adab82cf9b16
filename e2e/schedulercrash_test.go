//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

func TestSchedulerCrashLeavesNoGangInPart(t *testing.T) {
	const gangs, members = 8, 25
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	var group sync.WaitGroup
	group.Go(func() {
		for range 3 {
			if err := cluster.Kill(t.Context(), "scheduler"); err != nil {
				t.Log(err) // it was just being started
			}
		}
	})
	for i := range gangs {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(fmt.Sprintf("gang%d", i)).Gang().
			Role("worker", members, jobs.RunForever()).Obj())
	}
	group.Wait()
	for i := range gangs {
		name := fmt.Sprintf("gang%d", i)
		cluster.WaitFramework(t, namespace, name, "run whole", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == members
		})
	}
	recording.CheckQuiet(t)
}
