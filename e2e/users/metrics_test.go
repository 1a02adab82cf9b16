//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestMetricsFollowTheConventions of Prometheus, as far as they are Lockstep's own, and those of Kubernetes'
// libraries are there, too.
func TestMetricsFollowTheConventions(t *testing.T) {
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("counted").Gang().Role("worker", 2, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkAttemptRunning)
	token := cluster.ReaderOfMetrics(t, namespace)
	both := []string{"lockstep_build_info", "rest_client_requests_total", "go_goroutines", "process_resident_memory_bytes"}
	for program, of := range map[string]struct {
		address string
		want    []string
	}{
		"lockstep-controller": {controllerAddress, append([]string{
			"lockstep_controller_owners", "lockstep_controller_attempts_started_total", "lockstep_controller_time_to_run_seconds_bucket",
			"lockstep_controller_sync_duration_seconds_bucket", "lockstep_controller_status_size_bytes_bucket", "workqueue_depth", "workqueue_queue_duration_seconds_bucket",
		}, both...)},
		"lockstep-scheduler": {schedulerAddress, append([]string{
			"lockstep_scheduler_gang_cycles_total", "lockstep_scheduler_gang_members_placed_total", "scheduler_pending_pods",
		}, both...)},
	} {
		status, text := testbed.MustAsk(t, "https://"+of.address+"/metrics", token)
		if status != http.StatusOK {
			t.Fatalf("%s answers with %d: %.200s", program, status, text)
		}
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatalf("the metrics of %s can't be read: %v", program, err)
		}
		for _, problem := range problems {
			if strings.HasPrefix(problem.Metric, "lockstep_") {
				t.Errorf("%s of %s: %s", problem.Metric, program, problem.Text)
			}
		}
		for _, name := range of.want {
			if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(text) {
				t.Errorf("%s has no %s", program, name)
			}
		}
	}
}
