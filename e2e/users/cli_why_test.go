//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

func TestWhyTellsWhatEachFrameworkWaitsFor(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("draft").Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	u.isTold("draft", "NotStarted: its executionType is Create", "next: `start` starts it")
	u.creates(jobs.MakeFramework("wide").Gang().Role("worker", 20, jobs.RunForever().CPU("7")))
	u.isTold("wide", "NotEnoughResources: there is room for", "cpu", "next: ")
	u.creates(jobs.MakeFramework("broken").Role("worker", 1, jobs.RunFor(time.Second, 3)))
	u.isTold("broken", "Failed: it has ended with code 3", "worker/0 exited with 3", "`retry` runs it again")
	u.creates(jobs.MakeFramework("alone").Role("worker", 2, jobs.RunForever()))
	u.isTold("alone", "Running: it runs: 2 of 2 tasks")
	u.creates(jobs.MakeFramework("huge").Role("worker", 1, jobs.RunForever().CPU("1000")))
	u.isTold("huge", "Unschedulable: 1 of 1 tasks wait, as task worker/0 does", "next: ask for less, or add nodes that are large enough")

	cluster.SetQuota(t, u.namespace, 0)
	u.creates(jobs.MakeFramework("poor").Role("worker", 1, jobs.RunForever()))
	u.isTold("poor", "QuotaExceeded: ", "next: ask for less, end other work of the namespace")
	u.sees(u.types("why", "poor", "-o", "json"), 0, `"reason": "QuotaExceeded"`)
}

// TestWhyAndSimulateKnowJobsOfIntegrations by their names, and tell jobs of one name apart by their kinds.
func TestWhyAndSimulateKnowJobsOfIntegrations(t *testing.T) {
	t.Parallel()
	u := someone(t)
	cluster.CreateVolcanoJob(t, u.namespace, "wide", "{minAvailable: 20, schedulerName: lockstep-scheduler, tasks: [{name: worker, replicas: 20, @∞/7}]}", nil)
	u.isTold("wide", "NotEnoughResources: there is room for", "cpu", "next: ")
	u.isTold("vcjob/wide", "NotEnoughResources: there is room for")
	u.sees(u.types("get", "wide"), 0, "Job.batch.volcano.sh", "Pending", "0/20")
	u.sees(u.types("simulate", "wide"), 8, "room")
	u.sees(u.types("simulate", "vcjob/wide", "--add-nodes", "sim-0=20"), 0, "20 of 20 members have room")
	u.sees(u.types("why", "tfjob/wide"), 3, "not found")

	cluster.CreateTrainingJob(t, u.namespace, testbed.TFJob, "twin", "{tfReplicaSpecs: {Worker: {replicas: 1, @∞{schedulerName: lockstep-scheduler}}}}", nil)
	u.isTold("twin", "Placed: ")
	cluster.CreateTrainingJob(t, u.namespace, testbed.PyTorchJob, "twin", "{pytorchReplicaSpecs: {Worker: {replicas: 2, @∞/7{schedulerName: lockstep-scheduler}}}, runPolicy: {suspend: true}}", nil)
	u.isTold("pytorchjob/twin", "Suspended: ", "next: set spec.runPolicy.suspend to false")
	u.isTold("tfjob/twin", "Placed: ")
	u.sees(u.types("why", "twin"), 2, "several jobs have this name: say which, as tfjob/twin or pytorchjob/twin")
	u.sees(u.types("get", "twin"), 2, "say which")
	u.sees(u.types("simulate", "pytorchjob/twin"), 3, "has no PodGroup", "Suspended")
}

// TestATableThatIsWatchedTellsWhatChanges, a line each where there is no terminal.
func TestATableThatIsWatchedTellsWhatChanges(t *testing.T) {
	t.Parallel()
	u := someone(t)
	cmd := u.command("kubectl-lockstep", "get", "-w", "-n", u.namespace)
	var out terminal
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	until := func(text string) {
		t.Helper()
		testbed.Eventually(t, text, func(context.Context) (bool, string, error) {
			shown := out.text()
			return strings.Contains(shown, text), shown, nil
		})
	}
	u.creates(jobs.MakeFramework("watched").Role("worker", 2, jobs.RunForever()))
	until(u.namespace + "/watched Framework Running attempt 0 2/2 running\n")
	u.sees(u.types("stop", "watched"), 0)
	until(u.namespace + "/watched Framework Stopped attempt 0 0/2 succeeded\n")
	u.sees(u.types("delete", "watched"), 0)
	until(u.namespace + "/watched Framework was deleted\n")
}

// isTold waits until why says these texts.
func (u user) isTold(name string, texts ...string) {
	u.t.Helper()
	testbed.Eventually(u.t, "why "+name+" to be told", func(context.Context) (bool, string, error) {
		s := u.types("why", name)
		for _, text := range texts {
			if s.code != 0 || !strings.Contains(s.out, text) {
				return false, text + " is not in " + s.out + s.err, nil
			}
		}
		return true, "", nil
	})
}
