// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// onlyPod is a handle by which nobody but one Pod is marked and deleted.
// kube-scheduler's own code for victims does both by name: another Pod that has taken
// the name of a victim, as that of a StatefulSet does, would go for it.
type onlyPod struct {
	fwk.Handle
	uid types.UID
}

func (h onlyPod) ClientSet() kubernetes.Interface {
	return onlyPodClient{h.Handle.ClientSet(), h.uid}
}

type onlyPodClient struct {
	kubernetes.Interface
	uid types.UID
}

func (c onlyPodClient) CoreV1() corev1client.CoreV1Interface {
	return onlyPodCore{c.Interface.CoreV1(), c.uid}
}

type onlyPodCore struct {
	corev1client.CoreV1Interface
	uid types.UID
}

func (c onlyPodCore) Pods(namespace string) corev1client.PodInterface {
	return onlyPods{c.CoreV1Interface.Pods(namespace), c.uid}
}

type onlyPods struct {
	corev1client.PodInterface
	uid types.UID
}

// Delete asks the API server to compare the UID.
func (c onlyPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	options.Preconditions = &metav1.Preconditions{UID: &c.uid}
	return c.goneOr(ctx, name, c.PodInterface.Delete(ctx, name, options))
}

// Patch adds the UID to the patch, which the API server compares, too.
func (c onlyPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
	subresources ...string) (*corev1.Pod, error) {
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("reading a patch of Pod %s: %w", name, err)
	}
	patch["metadata"] = map[string]any{"uid": c.uid} // it is one of the status
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing a patch of Pod %s: %w", name, err)
	}
	pod, err := c.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	return pod, c.goneOr(ctx, name, err)
}

// goneOr is the error NotFound if err is a conflict because another Pod has the name,
// and err otherwise.
func (c onlyPods) goneOr(ctx context.Context, name string, err error) error {
	if !apierrors.IsConflict(err) {
		return err
	}
	live, getErr := c.Get(ctx, name, metav1.GetOptions{})
	if getErr == nil && live.UID != c.uid {
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return err
}
