// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// ErrHasEnded is the error of an eviction that would delete a Pod's result: the Pod has succeeded or failed.
var ErrHasEnded = errors.New("the Pod has ended")

// deletions is how often the deletion of a Pod is tried if the Pod changes each time.
const deletions = 4

// onlyPod is a handle with which only one Pod can be marked and deleted, and can be deleted only before it has ended.
// kube-scheduler's own code for victims marks and deletes by name. That code could delete another Pod with the same
// name, as happens with StatefulSets, or a Pod that has ended without the scheduler knowing.
type onlyPod struct {
	fwk.Handle
	client onlyPodClient
}

func (h onlyPod) ClientSet() kubernetes.Interface { return h.client }

type onlyPodClient struct {
	kubernetes.Interface
	pod *lastPod
}

// lastPod is a Pod in the last known state.
type lastPod struct {
	*corev1.Pod
}

// hasResult reports whether the Pod has ended by itself and is not being deleted.
func (p lastPod) hasResult() bool { return HasEnded(p.Pod) && p.DeletionTimestamp == nil }

func newOnlyPodClient(client kubernetes.Interface, pod *corev1.Pod) onlyPodClient {
	return onlyPodClient{client, &lastPod{pod}}
}

func (c onlyPodClient) CoreV1() corev1client.CoreV1Interface {
	return onlyPodCore{c.Interface.CoreV1(), c.pod}
}

type onlyPodCore struct {
	corev1client.CoreV1Interface
	pod *lastPod
}

func (c onlyPodCore) Pods(namespace string) corev1client.PodInterface {
	return onlyPods{c.CoreV1Interface.Pods(namespace), c.pod}
}

type onlyPods struct {
	corev1client.PodInterface
	pod *lastPod
}

// Delete deletes the Pod with its UID and version as preconditions. If the Pod has changed, Delete reads the Pod before
// it tries again.
func (c onlyPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	var err error
	for range deletions {
		if c.pod.hasResult() {
			return ErrHasEnded
		}
		options.Preconditions = &metav1.Preconditions{UID: &c.pod.UID, ResourceVersion: &c.pod.ResourceVersion}
		if err = c.PodInterface.Delete(ctx, name, options); !apierrors.IsConflict(err) {
			return err
		}
		if lookErr := c.look(ctx, name); lookErr != nil {
			return lookErr
		}
	}
	return err
}

// Patch adds the Pod's UID to the patch, so that the API server refuses the patch for another Pod with the same name.
func (c onlyPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
	subresources ...string) (*corev1.Pod, error) {
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("reading a patch of Pod %s: %w", name, err)
	}
	patch["metadata"] = map[string]any{"uid": c.pod.UID} // the patch only has a status
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing a patch of Pod %s: %w", name, err)
	}
	pod, err := c.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	switch {
	case err == nil:
		c.pod.Pod = pod
	case apierrors.IsConflict(err) && apierrors.IsNotFound(c.look(ctx, name)):
		err = apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return pod, err
}

// look reads the Pod from the API server and stores it as the last known state. It returns NotFound if another Pod has
// the name now.
func (c onlyPods) look(ctx context.Context, name string) error {
	live, err := c.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if live.UID != c.pod.UID {
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	c.pod.Pod = live
	return nil
}
