//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// issue is a user who asks for an action on a Job.
func issue(t *testing.T, job *batchv1alpha1.Job, action busv1alpha1.Action) {
	t.Helper()
	command := &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{GenerateName: job.Name + "-"},
		Action:     action,
		Target:     metav1.NewControllerRef(job, batchv1alpha1.JobGroupVersionKind),
	}
	if _, err := cluster.Lockstep.BusV1alpha1().Commands(job.Namespace).Create(t.Context(), command, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestTheShippedRoleIsEnough for all that the controller does for a Job: Commands, marks of
// Pods, hosts that are rewritten, claims, and the end of all of it.
func TestTheShippedRoleIsEnough(t *testing.T) {
	controller := cluster.StartControllerOfJobs(t)
	namespace := cluster.Namespace(t)
	apply(t, namespace, "j", fmt.Sprintf(`
  maxRetry: 9
  ttlSecondsAfterFinished: 1
  plugins: {svc: [], ssh: []}
  tasks:
  - {name: a, replicas: 2, policies: [{event: PodEvicted, action: RestartTask}], template: %s}`, template(1000)))
	job := cluster.WaitJobPhase(t, namespace, "j", batchv1alpha1.JobRunning)

	cluster.DeletePod(t, namespace, "j-a-1")
	cluster.WaitJob(t, namespace, "j", "run again after its task was restarted", func(job *batchv1alpha1.Job) bool {
		return job.Status.State.Phase == batchv1alpha1.JobRunning && job.Status.RetryCount == 1 && job.Status.Running == 2
	})
	issue(t, job, busv1alpha1.ActionAbortJob)
	cluster.WaitJobPhase(t, namespace, "j", batchv1alpha1.JobAborted)
	issue(t, job, busv1alpha1.ActionResumeJob)
	cluster.WaitJob(t, namespace, "j", "run again after it was resumed", func(job *batchv1alpha1.Job) bool {
		return job.Status.State.Phase == batchv1alpha1.JobRunning && job.Status.RetryCount == 2 && job.Status.Running == 2
	})
	if out, err := cluster.Kubectl(t.Context(), "patch", "vcjob", "j", "-n", namespace, "--type=json",
		`-p=[{"op":"replace","path":"/spec/tasks/0/replicas","value":3}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testbed.Eventually(t, "the hosts of three Pods", func(ctx context.Context) (bool, string, error) {
		hosts, err := cluster.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, "j-svc", metav1.GetOptions{})
		return err == nil && hosts.Data["VC_A_NUM"] == "3", fmt.Sprint(hosts.Data), err
	})
	issue(t, job, busv1alpha1.ActionTerminateJob)
	testbed.Eventually(t, "the Job to be gone", func(ctx context.Context) (bool, string, error) {
		job, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Get(ctx, "j", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, fmt.Sprintf("%+v", job.Status), err
	})

	apply(t, namespace, "claims", fmt.Sprintf(`
  volumes: [{mountPath: /out, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
  tasks:
  - {name: a, replicas: 1, template: %s}`, template(1)))
	testbed.Eventually(t, "the claim of the Job", func(ctx context.Context) (bool, string, error) {
		claims, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(claims.Items) == 1, fmt.Sprintf("%d claims", len(claims.Items)), err
	})
	if n := controller.Counter(t, `lockstep_controller_panics_total`); n != 0 {
		t.Errorf("there were %d panics", n)
	}
	if output, err := cluster.Kubectl(t.Context(), "get", "events", "-n", namespace, "--field-selector", "reason=ActionFailed", "-o", "name"); err != nil || output != "" {
		t.Errorf("the controller tells of requests that failed: %s (%v)", output, err)
	}
}
