// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// scale is a user who scales the first task of the Volcano Job j.
func (c *cluster) scale(replicas int32) {
	apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) { job.Spec.Tasks[0].Replicas = replicas })
}

// TestAScaleThatIsTakenBackRemovesNoPod, although the controller hears of it only when the Job
// has been scaled back.
func TestAScaleThatIsTakenBackRemovesNoPod(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		job := newJob(newTask("a", 4))
		job.Spec.MinAvailable = 1
		apiserver.Add(c.server, job)
		c.await(t, "all run", func() bool { return c.jobStatus("j").Running == 4 })
		c.pass(time.Minute)
		before := apiserver.All[corev1.Pod](c.server, "ns")
		c.program.process.Hold("jobs")
		c.scale(2)
		c.scale(4)
		c.program.process.Release("jobs", 1)
		c.pass(time.Minute)
		c.program.process.ReleaseAll("jobs")
		c.pass(time.Minute)
		for _, pod := range before {
			if now := apiserver.Find[corev1.Pod](c.server, "ns", pod.Name); now == nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
				t.Errorf("the Pod %s goes, which no spec wants to go any more", pod.Name)
			}
		}
		if s := c.jobStatus("j"); s.Running != 4 {
			t.Errorf("the status is %+v, want 4 that run", s)
		}
	})
}

// TestAnEndThatAnOldSpecCallsForIsNotWritten: the Job was scaled up before its last Pod
// succeeded, and the controller hears of that later.
func TestAnEndThatAnOldSpecCallsForIsNotWritten(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newJob(newTask("a", 2)))
		c.await(t, "all run", func() bool { return c.jobStatus("j").Running == 2 })
		c.pass(time.Minute)
		c.program.process.Hold("jobs")
		c.scale(3)
		c.ends = succeed
		c.runNodes(1)
		c.server.ClearJournal()
		c.pass(time.Minute)
		if phase := c.jobStatus("j").State.Phase; phase != batchv1alpha1.JobRunning {
			t.Errorf("the Job is %s, though a third Pod is to run", phase)
		}
		if tries := len(c.tries()); tries > 40 {
			t.Errorf("the write was tried %d times in a minute", tries)
		}
		c.program.process.ReleaseAll("jobs")
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		if names := c.podNames(); !slices.Equal(names, []string{"j-a-0", "j-a-1", "j-a-2"}) {
			t.Errorf("there are the Pods %v, want 3", names)
		}
	})
}
