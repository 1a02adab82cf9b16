// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// WaitJob waits until a Volcano Job fulfils condition and returns it.
func (c *Cluster) WaitJob(t testing.TB, namespace, name, what string, condition func(*batchv1alpha1.Job) bool) *batchv1alpha1.Job {
	t.Helper()
	var job *batchv1alpha1.Job
	Eventually(t, fmt.Sprintf("Job %s to %s", name, what), func(ctx context.Context) (bool, string, error) {
		var err error
		job, err = c.Lockstep.BatchV1alpha1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return condition(job), fmt.Sprintf("%+v", job.Status), nil
	})
	return job
}

// WaitJobPhase waits until a Volcano Job is in a phase.
func (c *Cluster) WaitJobPhase(t testing.TB, namespace, name string, phase batchv1alpha1.JobPhase) *batchv1alpha1.Job {
	t.Helper()
	return c.WaitJob(t, namespace, name, "be "+string(phase), func(job *batchv1alpha1.Job) bool { return job.Status.State.Phase == phase })
}
