// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"
)

// createParallelism is how many Nodes are created at a time.
const createParallelism = 16

// Create creates n simulated Nodes with kubelets of a version; those that exist are left as they are.
func Create(ctx context.Context, client kubernetes.Interface, n int, capacity Capacity, version string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(createParallelism)
	for i := range n {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, Node(i, capacity, version), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %s: %w", NodeName(i), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// probeName is the name of the Pod with which Probe tries out KWOK.
const probeName = "lockstep-local-probe"

// Probe returns the Pod that shows that simulated Nodes run Pods.
//
// It is more than a check: KWOK 0.8.0 makes its pool of Pod addresses when the first Pod
// needs one, without a lock, so that two first Pods may get the same address. After a first
// Pod that comes alone, addresses are unique.
func Probe() *corev1.Pod {
	automount := false
	grace := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: metav1.NamespaceSystem},
		Spec: corev1.PodSpec{
			NodeName:                      NodeName(0),
			AutomountServiceAccountToken:  &automount,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "probe", Image: "none"}},
		},
	}
}
