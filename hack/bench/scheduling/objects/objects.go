// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects makes the objects that schedulers are measured with: nodes, Pods and
// PodGroups.
package objects

import (
	"cmp"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

const (
	// Namespace has all Pods and PodGroups.
	Namespace = "bench"
	// NodeCPU is what a node offers.
	NodeCPU = "32"
	// rackLabel is what lockstep-local gives simulated nodes too, and nodesPerRack how
	// many nodes have the same unless a Scene says otherwise.
	rackLabel    = "topology.lockstep.dev/rack"
	nodesPerRack = 100
)

// Scene is a cluster with work for a scheduler.
type Scene struct {
	// Nodes is how many nodes there are, and NodesPerRack how many of them share a
	// rack, 0 for a hundred.
	Nodes, NodesPerRack int
	// Running is how many Pods of the work are on nodes already, the first ones.
	Running int
	Work    Work
}

// Took is what a scheduler took for the work.
type Took struct {
	// Seconds are those until all of it was decided, and FirstCPU the seconds of processor time until the first binding.
	Seconds, FirstCPU float64
}

// Work is what a scheduler is given: Pods, in gangs of one size or on
// their own.
type Work struct {
	// Scheduler is the schedulerName of the Pods.
	Scheduler string
	// Gangs is how many gangs there are, 0 for Pods without a PodGroup. Size is
	// the size of each of them, or how many Pods there are.
	Gangs, Size int
	// Doublings is how often there are half as many gangs of twice the size besides, 0 if all are of one size.
	Doublings int
	// API is whose PodGroups the gangs have.
	API API
	// CPU is the request of each Pod.
	CPU string
	// Rack says whether each gang is to stay in one rack, and how strictly; empty for
	// not.
	Rack schedulingv1alpha1.TopologyMode
	// PriorityClass of all Pods, empty for none.
	PriorityClass string
}

// Total is how many Pods it is.
func (w Work) Total() int {
	total := max(1, w.Gangs) * w.Size
	for d := 1; d <= w.Doublings; d++ {
		total += (w.Gangs >> d) * (w.Size << d)
	}
	return total
}

// Sizes yields the size of each gang.
func (w Work) Sizes() iter.Seq[int] {
	return func(yield func(int) bool) {
		for d := range w.Doublings + 1 {
			for range w.Gangs >> d {
				if !yield(w.Size << d) {
					return
				}
			}
		}
	}
}

// gangOf returns in which gang a Pod is, by number.
func (w Work) gangOf(pod int) int {
	gangs := 0
	for d := 0; ; d++ {
		n, size := w.Gangs>>d, w.Size<<d
		if pod < n*size || d == w.Doublings {
			return gangs + pod/size
		}
		gangs, pod = gangs+n, pod-n*size
	}
}

func groupName(i int) string { return fmt.Sprintf("gang-%d", i) }

// Group is a PodGroup of the work, of Lockstep's, which has so many members.
func (w Work) Group(i, size int) *schedulingv1alpha1.PodGroup {
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: groupName(i), Namespace: Namespace},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: int32(size)},
	}
	if w.Rack != "" {
		group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: rackLabel, Mode: w.Rack}}
	}
	return group
}

// Pod is a Pod of the work.
func (w Work) Pod(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: Namespace},
		Spec: corev1.PodSpec{
			SchedulerName:                w.Scheduler,
			PriorityClassName:            w.PriorityClass,
			AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/any",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(w.CPU), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}},
			}},
		},
	}
	if w.Gangs > 0 {
		words[w.API].link(pod, groupName(w.gangOf(i)))
	}
	return pod
}

// NodeName is the name of a node.
func NodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// Node is a node of the scene.
func (s Scene) Node(i int) *corev1.Node {
	offers := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(NodeCPU),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName(i), Labels: map[string]string{
			corev1.LabelHostname: NodeName(i), rackLabel: fmt.Sprintf("rack-%d", i/cmp.Or(s.NodesPerRack, nodesPerRack)),
		}},
		Status: corev1.NodeStatus{
			Capacity: offers, Allocatable: offers,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated"}},
		},
	}
}
