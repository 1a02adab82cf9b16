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

// complete leads the Framework fw to its end, and has all of it be gone but the Framework.
func (c *cluster) complete(t *testing.T, tasks int32) {
	t.Helper()
	c.ends = succeed
	apiserver.Add(c.server, newFramework(tasks))
	c.awaitState(t, "fw", frameworkv1.FrameworkCompleted)
	c.pass(time.Minute)
}

// TestACompletedFrameworkIsNotKeptInMind: only its retention is, whatever is changed in it meanwhile.
func TestACompletedFrameworkIsNotKeptInMind(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		rests := func(after string) {
			t.Helper()
			if n := c.program.frameworks.Remembered(); n > 0 {
				t.Errorf("after %s its status is kept in memory", after)
			}
		}
		c.complete(t, 2)
		rests("its end")
		c.server.ClearJournal()
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			metav1.SetMetaDataAnnotation(&f.ObjectMeta, "example.com/note", "changed")
		})
		c.pass(time.Minute)
		rests("a change")
		c.stop(t)
		c.startProgram()
		c.pass(time.Minute)
		rests("a change of the leader")
		if writes := c.writes(); len(writes) > 0 {
			t.Errorf("the controller wrote %q, want nothing", writes)
		}
		end := c.statusOf("ns", "fw").CompletionTime.Time
		c.pass(time.Until(end.Add(retention - time.Minute)))
		if apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw") == nil {
			t.Fatal("the Framework is deleted before its retention is over")
		}
		c.pass(2 * time.Minute)
		if apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw") != nil {
			t.Error("the Framework is not deleted when its retention is over")
		}
	})
}

// TestALeftoverOfACompletedFrameworkIsDeleted, although the controller has the Framework not in mind any more.
func TestALeftoverOfACompletedFrameworkIsDeleted(t *testing.T) {
	t.Run("by the controller that has led it", func(t *testing.T) { leaveOver(t, false) })
	t.Run("by a new leader", func(t *testing.T) { leaveOver(t, true) })
}

func leaveOver(t *testing.T, newLeader bool) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.complete(t, 1)
		if newLeader {
			c.stop(t)
		}
		c.server.SetObserver(nil) // The book knows of no Pod that somebody else makes.
		f := apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw")
		attempt := apiserver.Add(c.server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: f.Status.AttemptStatus.ConfigMapName, Labels: map[string]string{frameworkv1.KeyFrameworkName: "fw"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f, frameworkv1.FrameworkGroupVersionKind)},
		}})
		if newLeader {
			c.startProgram()
		}
		c.pass(time.Minute)
		if left := apiserver.Find[corev1.ConfigMap](c.server, "ns", attempt.Name); left != nil && left.DeletionTimestamp == nil {
			t.Error("a ConfigMap that a former leader has made since is not deleted")
		}
	})
}
