// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placed returns the names of the Pods of a namespace that have a node, sorted.
func (c *Cluster) Placed(ctx context.Context, namespace string) ([]string, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" {
			names = append(names, pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// WaitPlaced waits until exactly n Pods of a namespace have a node.
func (c *Cluster) WaitPlaced(t testing.TB, namespace string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d Pods to be placed", n), func(ctx context.Context) (bool, string, error) {
		names, err := c.Placed(ctx, namespace)
		return len(names) == n, fmt.Sprint(names), err
	})
}
