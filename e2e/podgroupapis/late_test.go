//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// early is a namespace with a Pod that names a group of scheduler-plugins, and was there before the kind of the group.
const early = "early"

// comeEarly creates a Pod that names a group before the kind of the group is installed, and waits until it is told why it waits.
func comeEarly(ctx context.Context, c *testCluster) error {
	if err := c.createFirst(ctx, early, testbed.MakePod("early-0", named(label, "early"))); err != nil {
		return err
	}
	return localenv.Await(ctx, "the Pod to be told that its kind of PodGroups is not served", func(ctx context.Context) (bool, string, error) {
		pod, err := c.Kube.CoreV1().Pods(early).Get(ctx, "early-0", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == "PodGroupsNotServed" {
				return true, "", nil
			}
		}
		return false, fmt.Sprint(pod.Status.Conditions), nil
	})
}

// awaitRestart waits until the scheduler ends because a kind has come, and starts it again as Kubernetes would.
func (c *testCluster) awaitRestart(ctx context.Context, o localenv.SchedulerOptions) error {
	if err := c.scheduler.WaitLog(ctx, "the program ends, to be started again"); err != nil {
		return err
	}
	select {
	case <-c.scheduler.Done():
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to end: %w", context.Cause(ctx))
	}
	return c.runScheduler(ctx, o)
}

// TestAPodThatCameBeforeTheKindIsAMember of its gang, once the scheduler was started again.
func TestAPodThatCameBeforeTheKindIsAMember(t *testing.T) {
	cluster := withNative.parallel(t)
	cluster.createGroupOfPlugins(t, early, "early", "TFJob", map[string]any{"minMember": int64(2)})
	cluster.WaitMessage(t, early, "involvedObject.kind=PodGroup", "1 of at least 2 members exist")
}
