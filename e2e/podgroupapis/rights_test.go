//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestTheRightToReadGroupsIsTakenAway: gangs that run go on, new ones wait and say why, all other Pods are placed. When
// the right comes back, those that wait are placed.
func TestTheRightToReadGroupsIsTakenAway(t *testing.T) {
	cluster := withNative.parallel(t)
	namespace, other := cluster.Namespace(t), cluster.Namespace(t)
	gang := func(name string) {
		cluster.createGroupOfPlugins(t, namespace, name, "TFJob", map[string]any{"minMember": int64(2)})
		for i := range 2 {
			cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("%s-%d", name, i), named(label, name)))
		}
	}
	gang("early")
	cluster.WaitPlaced(t, namespace, 2)

	cluster.kubectl(t, "delete", "clusterrolebinding", "lockstep-scheduler-scheduler-plugins")
	t.Cleanup(func() { // for the other tests, wherever this one ends
		if err := cluster.ApplyManifests(context.Background(), rightsOfSchedulerPlugins); err != nil {
			t.Error(err)
		}
	})
	testbed.Eventually(t, "the right to be gone", func(ctx context.Context) (bool, string, error) {
		review, err := cluster.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:lockstep-system:lockstep-scheduler",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: dialect.SchedulerPlugins.Kind().Group, Resource: "podgroups", Verb: "list"},
		}}, metav1.CreateOptions{})
		if err != nil {
			return false, "", err
		}
		return !review.Status.Allowed, review.Status.Reason, nil
	})
	// A watch goes on without the right that it began with. It ends when the definition changes.
	cluster.kubectl(t, "patch", "crd", dialect.SchedulerPlugins.CRD(), "--type=merge", "-p", `{"spec":{"names":{"categories":["gangs"]}}}`)
	cluster.waitLog(t, isOnThough(dialect.SchedulerPlugins, "lockstep-scheduler may not list its objects: the ClusterRole that allows it is not bound"))

	gang("late")
	for i := range 2 {
		cluster.waitEvent(t, namespace, fmt.Sprintf("late-%d", i), "FailedScheduling", "lockstep-scheduler may not list PodGroups of scheduling.x-k8s.io")
	}
	cluster.CreatePod(t, other, testbed.MakePod("ordinary"))
	cluster.WaitPlaced(t, other, 1)
	if names, err := cluster.Placed(t.Context(), namespace); err != nil || strings.Join(names, " ") != "early-0 early-1" {
		t.Errorf("%v are placed, want early-0 and early-1: a gang that runs goes on, and a new one waits (%v)", names, err)
	}

	if err := cluster.ApplyManifests(t.Context(), rightsOfSchedulerPlugins); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, namespace, 4) // within a minute: so often the scheduler tries
}

// kubectl runs a command of an administrator.
func (c *testCluster) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := c.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
