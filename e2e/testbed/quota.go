// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetQuota allows a number of Pods in a namespace, and waits until that is in force.
func (c *Cluster) SetQuota(t testing.TB, namespace string, pods int64) {
	t.Helper()
	quotas := c.Kube.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}},
	}
	if _, err := quotas.Get(t.Context(), quota.Name, metav1.GetOptions{}); err != nil {
		if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	} else if _, err := quotas.Update(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The quota counts once its controller has seen it.
	Eventually(t, "the quota to be in force", func(ctx context.Context) (bool, string, error) {
		quota, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		hard := quota.Status.Hard.Pods()
		return hard.Value() == pods, fmt.Sprintf("%+v", quota.Status), nil
	})
}
