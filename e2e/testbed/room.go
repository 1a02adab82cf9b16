// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// roomLabel is on the nodes of a room: the label that Pods select, and the taint that keeps
// others out.
const roomLabel = "tests.lockstep.dev/room"

// Room is a set of simulated nodes for the Pods of one test.
type Room struct {
	name    string
	cluster *Cluster
	t       testing.TB
	nodes   []string
}

// Room makes nodes for one test, with cores each, and waits until they take Pods. They are there until the test ends,
// longer than its namespace if that is made later.
func (c *Cluster) Room(t testing.TB, cores ...int) *Room {
	t.Helper()
	r := &Room{name: fmt.Sprintf("room-%x", time.Now().UnixNano()), cluster: c, t: t}
	t.Cleanup(func() {
		for _, node := range r.nodes {
			if err := c.Kube.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	for _, n := range cores {
		r.create(n, nil)
	}
	r.waitReady()
	return r
}

// AddNode adds a node with cores and labels, and waits until the node takes Pods.
func (r *Room) AddNode(cores int, labels map[string]string) {
	r.t.Helper()
	r.create(cores, labels)
	r.waitReady()
}

// waitReady waits until the nodes are ready, and no taint keeps Pods of the room from them. Otherwise the scheduler might
// plan the first gang for a part of the room, and the next one for all of it.
func (r *Room) waitReady() {
	r.t.Helper()
	for _, name := range r.nodes {
		Eventually(r.t, "node "+name+" to take Pods", func(ctx context.Context) (bool, string, error) {
			node, err := r.cluster.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady })
			return ready && !tainted, fmt.Sprint(node.Spec.Taints, node.Status.Conditions), nil
		})
	}
}

// create creates a node with cores and labels.
func (r *Room) create(cores int, labels map[string]string) {
	r.t.Helper()
	client := r.cluster.Kube.CoreV1().Nodes()
	template, err := client.Get(r.t.Context(), "sim-0", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	name := fmt.Sprintf("%s-%d", r.name, len(r.nodes))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels), Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{Taints: append(slices.Clone(template.Spec.Taints),
			corev1.Taint{Key: roomLabel, Value: r.name, Effect: corev1.TaintEffectNoSchedule})},
		Status: corev1.NodeStatus{Capacity: template.Status.Capacity.DeepCopy(), Addresses: template.Status.Addresses, NodeInfo: template.Status.NodeInfo},
	}
	for key, value := range template.Annotations {
		if strings.HasPrefix(key, "kwok.x-k8s.io/") {
			node.Annotations[key] = value
		}
	}
	maps.Copy(node.Labels, labels)
	node.Labels[corev1.LabelHostname], node.Labels[roomLabel] = name, r.name
	node.Status.Capacity[corev1.ResourceCPU] = *resource.NewQuantity(int64(cores), resource.DecimalSI)
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	if _, err := client.Create(r.t.Context(), node, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.nodes = append(r.nodes, name)
}

// Cordon closes the nodes to new Pods, or opens them. No Pod that is created later gets onto a closed node.
func (r *Room) Cordon(closed bool) {
	r.t.Helper()
	r.cordon(closed, r.nodes)
}

// CordonNode closes one of the nodes to new Pods, or opens it: the node with this index, in the order in which the nodes
// were made. No Pod that is created later gets onto a closed node.
func (r *Room) CordonNode(index int, closed bool) {
	r.t.Helper()
	r.cordon(closed, r.nodes[index:index+1])
}

func (r *Room) cordon(closed bool, nodes []string) {
	r.t.Helper()
	for _, node := range nodes {
		patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, closed)
		if _, err := r.cluster.Kube.CoreV1().Nodes().Patch(r.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, node := range nodes {
		if closed {
			r.cluster.WaitCordoned(r.t, node, r.Confine)
		}
	}
}

// WaitCordoned waits until the scheduler of gangs has seen that a node is closed. The scheduler watches nodes and Pods by two
// watches, and places a Pod on the node if the Pod is seen first. change has a Pod tolerate the taints of the node.
func (c *Cluster) WaitCordoned(t testing.TB, node string, change ...func(*corev1.Pod)) {
	t.Helper()
	namespace, probes := c.Namespace(t), 0
	probe := func(pod *corev1.Pod) {
		// A Pod that asks for nothing has room on every node.
		pod.Spec.Containers[0].Resources.Requests = nil
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
	c.CreatePod(t, namespace, MakePod("probe-0", append(change, probe)...))
	Eventually(t, "the scheduler to leave node "+node+" alone", func(ctx context.Context) (bool, string, error) {
		pod, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, fmt.Sprintf("probe-%d", probes), metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if pod.Spec.NodeName != "" {
			probes++
			c.CreatePod(t, namespace, MakePod(fmt.Sprintf("probe-%d", probes), append(change, probe)...))
		}
		refused := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, "were unschedulable")
		})
		return refused, fmt.Sprint(pod.Status.Conditions), nil
	})
}

// selection are the fields of a Pod's spec that bring it into the room.
func (r *Room) selection() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(", nodeSelector: {%s: %s}, tolerations: [{key: %s, operator: Exists}]", roomLabel, r.name, roomLabel)
}

// Confine has a Pod run on the nodes of the room, and on no others.
func (r *Room) Confine(pod *corev1.Pod) {
	pod.Spec.NodeSelector = map[string]string{roomLabel: r.name}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: roomLabel, Operator: corev1.TolerationOpExists})
}
