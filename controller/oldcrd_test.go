// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// prune drops from the stored status what a CRD of an older Lockstep does not know, but for the
// last one, which shows what was sent.
func (c *cluster) prune() {
	status := c.statusOf("ns", "fw")
	if status == nil || status.State == frameworkv1.FrameworkCompleted || status.History == nil && status.Waiting == nil && status.AttemptStatus.TaskAttempts == (frameworkv1.TaskAttemptCounts{}) {
		return
	}
	apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
		f.Status.History, f.Status.Waiting = nil, nil
		f.Status.AttemptStatus.TaskAttempts = frameworkv1.TaskAttemptCounts{}
	})
}

// TestAnOlderCRDThatDropsFieldsHarmsNothing: a task waits for three minutes, fails, and is retried
// with the whole Framework. The status is written no more often than under a CRD that keeps all.
func TestAnOlderCRDThatDropsFieldsHarmsNothing(t *testing.T) {
	live := func(t *testing.T, each func(*cluster)) (writes int) {
		inCluster(t, func(t *testing.T, c *cluster) {
			f := newFramework(1)
			f.Spec.RetryPolicy.MaxRetryCount = 1
			apiserver.Add(c.server, f)
			for range 180 {
				c.pass(time.Second)
				each(c)
			}
			if waiting := c.task().AttemptStatus.Waiting; waiting == nil || waiting.Reason != "NotYetScheduled" {
				t.Errorf("the task waits for %+v", waiting)
			}
			for range 2 {
				c.await(t, "the task runs", func() bool {
					each(c)
					return c.task().State == frameworkv1.TaskAttemptRunning
				})
				apiserver.Change(c.server, "ns", "fw-w-0", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
				c.await(t, "the task does not run", func() bool {
					each(c)
					return c.task().State != frameworkv1.TaskAttemptRunning
				})
			}
			c.await(t, "the Framework is Completed", func() bool {
				each(c)
				return c.statusOf("ns", "fw").State == frameworkv1.FrameworkCompleted
			})
			// The controller knows its own writes, and keeps what was dropped as long as it lives.
			if status := c.statusOf("ns", "fw"); status.AttemptStatus.ID != 1 || len(status.History) != 2 {
				t.Errorf("it is Completed in attempt %d with %d records, want 1 and 2", status.AttemptStatus.ID, len(status.History))
			}
			writes = c.statusWrites()
		})
		return writes
	}
	kept := live(t, func(*cluster) {})
	dropped := live(t, (*cluster).prune)
	if t.Logf("%d writes, %d with fields dropped", kept, dropped); dropped > kept+2 {
		t.Errorf("the status is written %d times, and %d times where nothing is dropped", dropped, kept)
	}
}
