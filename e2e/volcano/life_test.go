//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// template is that of a Pod of one core that runs for some seconds and exits with 0.
func template(seconds int) string {
	return fmt.Sprintf(`{metadata: {annotations: {simulate.lockstep.dev/run-seconds: %q}}, spec: {restartPolicy: Never,
      containers: [{name: c, image: lockstep.dev/simulated:any, resources: {requests: {cpu: 1}}}]}}`, fmt.Sprint(seconds))
}

// apply creates a Job as a user does.
func apply(t *testing.T, namespace, name, spec string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec: %s\n", name, spec)
	if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestAJobRunsToItsEnd(t *testing.T) {
	cluster.StartControllerOfJobs(t)
	namespace := cluster.Namespace(t)
	apply(t, namespace, "j", fmt.Sprintf(`
  plugins: {env: [], svc: [], ssh: []}
  tasks:
  - {name: ps, replicas: 2, template: %[1]s}
  - {name: worker, replicas: 5, template: %[1]s}`, template(3)))
	job := cluster.WaitJobPhase(t, namespace, "j", batchv1alpha1.JobCompleted)
	if job.Status.Succeeded != 7 || job.Status.Failed != 0 || job.Status.RetryCount != 0 {
		t.Errorf("the status is %+v, want 7 Pods that have succeeded, without a retry", job.Status)
	}
	var phases []batchv1alpha1.JobPhase
	for _, condition := range job.Status.Conditions {
		phases = append(phases, condition.Status)
	}
	want := []batchv1alpha1.JobPhase{batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobCompleted}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Errorf("unexpected conditions (-want +got):\n%s", diff)
	}
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
		if !metav1.IsControlledBy(&pods.Items[i], job) {
			t.Errorf("Pod %s is not controlled by the Job", pods.Items[i].Name)
		}
	}
	wantNames := []string{"j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4"}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("unexpected Pods (-want +got):\n%s", diff)
	}
}
