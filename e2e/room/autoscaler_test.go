//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// scanInterval is how often the autoscaler looks; a real one does so every ten seconds.
const scanInterval = 500 * time.Millisecond

// newRack is the rack of all nodes that the autoscaler adds.
const newRack = "new"

// newNodes begins the names of the nodes that the autoscaler adds; a number ends them.
const newNodes = "scaled-"

// autoscaler stands in for a cluster autoscaler that adds nodes. As a real one does, it looks
// for Pods that are unschedulable, takes those that are nominated for a node that exists for
// being there, and packs the others into the room that there is. For each that does not fit it
// adds a node, if that would hold it, and puts others there, too. It knows nothing of gangs,
// nor of preemption.
type autoscaler struct {
	kube     kubernetes.Interface
	template *corev1.Node

	mu    sync.Mutex
	added []string // nodes
}

// startAutoscaler starts one for the time of a test. When the test ends, and its Pods are gone,
// it removes the nodes that it has added. So it comes before the test's namespace.
func startAutoscaler(t *testing.T) *autoscaler {
	t.Helper()
	template, err := cluster.Kube.CoreV1().Nodes().Get(t.Context(), "sim-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := &autoscaler{kube: cluster.Kube, template: template}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if err := a.scan(ctx); err != nil && ctx.Err() == nil {
				t.Logf("the autoscaler: %v", err)
			}
			select {
			case <-time.After(scanInterval):
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, name := range a.nodes() {
			if err := a.kube.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	return a
}

// nodes are those that it has added.
func (a *autoscaler) nodes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.added)
}

// scan adds the nodes that are missing now.
func (a *autoscaler) scan(ctx context.Context) error {
	nodes, err := a.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := a.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	free := make(map[string]int64) // millicores
	for i := range nodes.Items {
		free[nodes.Items[i].Name] = nodes.Items[i].Status.Allocatable.Cpu().MilliValue()
	}
	var pending []*corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch _, exists := free[pod.Status.NominatedNodeName]; {
		case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName != "":
			free[pod.Spec.NodeName] -= request(pod)
		case pod.DeletionTimestamp != nil, !isUnschedulable(pod):
		case exists:
			free[pod.Status.NominatedNodeName] -= request(pod)
		default:
			pending = append(pending, pod)
		}
	}
	for _, pod := range pending {
		if takeRoom(free, request(pod)) || request(pod) > a.template.Status.Allocatable.Cpu().MilliValue() {
			continue
		}
		name, err := a.addNode(ctx)
		if err != nil {
			return err
		}
		free[name] = a.template.Status.Allocatable.Cpu().MilliValue() - request(pod)
	}
	return nil
}

// takeRoom takes room on a node that has it, and says whether there is one.
func takeRoom(free map[string]int64, request int64) bool {
	for name, left := range free {
		if left >= request {
			free[name] -= request
			return true
		}
	}
	return false
}

// addNode adds a simulated node.
func (a *autoscaler) addNode(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := fmt.Sprintf("%s%d", newNodes, len(a.added))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(a.template.Labels), Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{Taints: a.template.Spec.Taints},
		Status: corev1.NodeStatus{Capacity: a.template.Status.Capacity, Allocatable: a.template.Status.Allocatable,
			Addresses: a.template.Status.Addresses, NodeInfo: a.template.Status.NodeInfo},
	}
	for key, value := range a.template.Annotations {
		if strings.HasPrefix(key, "kwok.x-k8s.io/") {
			node.Annotations[key] = value
		}
	}
	node.Labels[corev1.LabelHostname], node.Labels[rackLabel] = name, newRack
	if _, err := a.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	a.added = append(a.added, name)
	return name, nil
}

// request is how many millicores a Pod requests.
func request(pod *corev1.Pod) int64 {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// isUnschedulable says whether a Pod was told that it has no place.
func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
