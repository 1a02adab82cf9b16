// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAFrameworkThatARestoredBackupBringsBackGoesOn: etcd is restored from a backup while the controller runs, and
// the Framework, whose end it knows, runs again.
func TestAFrameworkThatARestoredBackupBringsBackGoesOn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newFramework(2))
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		c.pass(time.Minute)
		backup := c.server.Version()
		c.ends = succeed
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(time.Minute)
		c.server.SetObserver(nil) // The book knows of no way back.
		c.server.Restore(backup)
		if got := c.statusOf("ns", "fw").State; got != frameworkv1.FrameworkAttemptRunning {
			t.Fatalf("the backup says that the Framework is %s, want it running", got)
		}
		c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
		c.pass(time.Minute)
		if left := len(apiserver.All[corev1.ConfigMap](c.server, "ns")); left > 0 {
			t.Errorf("%d ConfigMaps are left of the attempt", left)
		}
	})
}

// TestWhatWasDeletedAfterABackupIsDeletedAgain, also if the Framework is as it was.
func TestWhatWasDeletedAfterABackupIsDeletedAgain(t *testing.T) {
	for name, node := range map[string]string{"one that goes at once": "", "one that has a node": "node"} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				apiserver.Add(c.server, newFramework(1))
				c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
				c.pass(time.Minute)
				c.server.SetObserver(nil) // The book knows of no Pod that somebody else makes.
				configMap := apiserver.All[corev1.ConfigMap](c.server, "ns")[0]
				apiserver.Add(c.server, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "ns", Name: "leftover", Labels: map[string]string{frameworkv1.KeyFrameworkName: "fw"},
						OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
					},
					Spec: corev1.PodSpec{NodeName: node},
				})
				isGoing := func() bool {
					pod := apiserver.Find[corev1.Pod](c.server, "ns", "leftover")
					return pod == nil || pod.DeletionTimestamp != nil
				}
				backup := c.server.Version()
				c.pass(time.Minute)
				if !isGoing() {
					t.Fatal("a Pod that is no task's is not deleted")
				}
				c.server.Restore(backup)
				if isGoing() {
					t.Fatal("the backup does not show the Pod as it was")
				}
				c.pass(2 * time.Minute)
				if !isGoing() {
					t.Error("the Pod is not deleted again")
				}
			})
		})
	}
}
