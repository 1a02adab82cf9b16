// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// CreateNamespace creates a namespace with the Name or GenerateName in meta. CreateNamespace returns the name as soon
// as Pods can be created there.
func (c *Cluster) CreateNamespace(ctx context.Context, meta metav1.ObjectMeta) (string, error) {
	created, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	err = Await(ctx, "the service account of namespace "+created.Name, func(ctx context.Context) (bool, string, error) {
		_, err := c.Kube.CoreV1().ServiceAccounts(created.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, "", err
	})
	return created.Name, err
}

// DeleteNamespace deletes a namespace with all its objects, and waits until the namespace is gone. An error does not
// keep it from deleting the rest.
func (c *Cluster) DeleteNamespace(ctx context.Context, namespace string) error {
	return errors.Join(c.ClearNamespace(ctx, namespace), c.WaitNamespaceGone(ctx, namespace))
}

// ClearNamespace deletes a namespace, and waits until it has no Framework and no Pod, and none can be created. From
// Pods that jobs.Held keeps it removes the finalizer. Kubernetes deletes the other objects some seconds later;
// WaitNamespaceGone waits for that. An error does not keep ClearNamespace from deleting the rest.
func (c *Cluster) ClearNamespace(ctx context.Context, namespace string) error {
	// Frameworks first, and in the foreground: the controller must not try to make new Pods while the namespace empties.
	foreground, zero := metav1.DeletePropagationForeground, int64(0)
	frameworks, pods := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace), c.Kube.CoreV1().Pods(namespace)
	var errs []error
	err := tryAgain(func() error {
		return frameworks.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.ListOptions{})
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("deleting Frameworks: %w", err))
	}
	// Before the Pods: in a namespace that is being deleted no object can be created.
	if err := c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		errs = append(errs, fmt.Errorf("deleting namespace %s: %w", namespace, err))
	}
	err = Await(ctx, "the Frameworks and Pods of namespace "+namespace+" to be gone", func(ctx context.Context) (bool, string, error) {
		// Again and again, because a request to create one may have been under way.
		if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
			return false, "", err
		}
		if err := c.ReleasePods(ctx, namespace); err != nil {
			return false, "", err
		}
		leftPods, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		leftFrameworks, err := frameworks.List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // Their kind may not be served.
			return false, "", err
		}
		f, p := len(leftFrameworks.Items), len(leftPods.Items)
		return f+p == 0, fmt.Sprintf("%d Frameworks, %d Pods", f, p), nil
	})
	return errors.Join(append(errs, err)...)
}

// WaitNamespaceGone waits until a namespace that ClearNamespace has deleted is gone, with all objects.
func (c *Cluster) WaitNamespaceGone(ctx context.Context, namespace string) error {
	return Await(ctx, "namespace "+namespace+" to be gone", func(ctx context.Context) (bool, string, error) {
		left, err := c.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, fmt.Sprintf("it exists: %+v", left.Status), err
	})
}

// tryAgain repeats a request that deletes all objects of a kind, a few times if it fails. The API server deletes the
// objects one by one and ends a request after a minute; the next request deletes what is left.
func tryAgain(deletion func() error) error {
	return retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, deletion)
}

// ReleasePods removes the finalizer jobs.Hold from the deleted Pods of a namespace, so that they disappear.
func (c *Cluster) ReleasePods(ctx context.Context, namespace string) error {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobs.Hold})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			continue
		}
		_, err := c.Kube.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType,
			[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
