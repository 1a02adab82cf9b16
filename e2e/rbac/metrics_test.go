//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// readerOfMetrics is the token of an account in a namespace that has the role for metrics.
func readerOfMetrics(t *testing.T, namespace string) string {
	t.Helper()
	reader, err := cluster.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "create", "clusterrolebinding", namespace, "--clusterrole=lockstep-metrics-reader", "--serviceaccount="+namespace+":"+reader.Name); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if err := cluster.Kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return cluster.Token(t, namespace, reader.Name)
}

// TestMetricsFollowTheConventions of Prometheus, as far as they are Lockstep's own, and those of Kubernetes'
// libraries are there, too.
func TestMetricsFollowTheConventions(t *testing.T) {
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("counted").Gang().Role("worker", 2, jobs.RunForever()).Obj()
	createFramework(t, namespace, fw)
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkAttemptRunning)
	token := readerOfMetrics(t, namespace)
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
