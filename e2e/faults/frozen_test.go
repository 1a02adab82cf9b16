//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/e2e/testbed/faultproxy"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

const (
	// becameLeader is what a replica logs when it becomes the leader.
	becameLeader = "uccessfully acquired lease"
	// takesOverIn is how long a replica may take to notice that the leader is gone: the
	// lease of 15 seconds, and time to try for it.
	takesOverIn = 30 * time.Second
)

// TestAFrozenLeaderHasNoEffect freezes the leader while a request of it is on its way. The request
// reaches the API server after another replica has led the Framework on, and then the old
// leader thaws. The API server refuses the request, and nothing is done twice.
func TestAFrozenLeaderHasNoEffect(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: -all-faults runs it")
	}
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	for _, tc := range []struct {
		name, method, path string
		// task is what the three tasks of the Framework run.
		task  *jobs.TaskBuilder
		until frameworkv1.FrameworkState
	}{
		{name: "creation of a ConfigMap", method: "POST", path: "/configmaps", task: jobs.RunForever(), until: frameworkv1.FrameworkAttemptRunning},
		{name: "creation of a PodGroup", method: "POST", path: "/podgroups", task: jobs.RunForever(), until: frameworkv1.FrameworkAttemptRunning},
		{name: "creation of a Pod", method: "POST", path: "/pods", task: jobs.RunForever(), until: frameworkv1.FrameworkAttemptRunning},
		{name: "write of a status", method: "PUT", path: "/status", task: jobs.RunForever(), until: frameworkv1.FrameworkAttemptRunning},
		{name: "deletion of a ConfigMap", method: "DELETE", path: "/configmaps", task: jobs.RunFor(time.Second, 0), until: frameworkv1.FrameworkCompleted},
		{name: "deletion of a Pod", method: "DELETE", path: "/pods", task: jobs.RunFor(time.Second, 5).Retry(false, 1).InFirstTaskAttempts(1), until: frameworkv1.FrameworkCompleted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy, kubeconfig := proxyOf(t, "controller")
			elected := localenv.ControllerOptions{Config: "leaderElection: {enabled: true}\n", Kubeconfig: kubeconfig}
			leader := cluster.StartController(t, elected)
			leader.WaitLog(t, becameLeader)
			elected.Kubeconfig = ""
			successor := cluster.StartController(t, elected)
			successor.WaitReady(t)

			namespace := cluster.Namespace(t)
			recording := cluster.Record(t, namespace)
			inNamespace := faultproxy.Request(tc.method, tc.path)
			held := proxy.Hold(func(r *http.Request) bool {
				// A dry run asks the API server for unknown fields, and writes nothing.
				return inNamespace(r) && !r.URL.Query().Has("dryRun") && faultproxy.Request(tc.method, "/namespaces/"+namespace+"/")(r)
			})
			fw := jobs.MakeFramework("frozen").Gang().Role("worker", 3, tc.task.CPU("1")).Obj()
			create(t, namespace, fw)
			select {
			case <-held.Caught():
			case <-time.After(testbed.Patience):
				t.Fatalf("no %s %s has come", tc.method, tc.path)
			}
			if err := leader.Freeze(); err != nil {
				t.Fatal(err)
			}
			frozen := time.Now()
			testbed.EventuallyWithin(t, takesOverIn, "another replica to lead", func(context.Context) (bool, string, error) {
				return strings.Contains(successor.Log(t), becameLeader), "", nil
			})
			measured(t, "late", fmt.Sprintf("%s | %.0f s", tc.name, time.Since(frozen).Seconds()))
			cluster.WaitFramework(t, namespace, fw.Name, "be led on by it", func(fw *frameworkv1.Framework) bool {
				return fw.Status != nil && fw.Status.State == tc.until
			})
			if code, body := held.Release(); code != http.StatusConflict && code != http.StatusNotFound {
				t.Errorf("the API server answered the late request with %d, want 409 or 404: %s", code, body)
			}
			if err := leader.Thaw(); err != nil {
				t.Fatal(err)
			}
			// A leader that has lost its lease ends.
			select {
			case <-leader.Done():
			case <-time.After(testbed.Patience):
				t.Error("the old leader goes on")
			}
			cluster.WaitFrameworkState(t, namespace, fw.Name, tc.until)
			recording.CheckQuiet(t)
			if got, want := recording.Pods(), podsOf(tc.name); got != want {
				t.Errorf("%d Pods were made, want %d", got, want)
			}
		})
	}
}

// podsOf is how many Pods a Framework of three tasks has made: twice as many if each task is
// retried once.
func podsOf(name string) int {
	if name == "deletion of a Pod" {
		return 6
	}
	return 3
}
