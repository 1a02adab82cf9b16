// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// CheckQuiet is Check at a quiet moment: when nothing more happens, so that whoever waits now has
// no room. Besides the consistency guarantees it holds that no node ever had more Pods than
// its cores allow, and that no gang of a Framework is placed in part.
func (r *Recording) CheckQuiet(t testing.TB) {
	t.Helper()
	r.Check(t)
	nodes, err := r.cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cores := map[string]int64{}
	for _, node := range nodes.Items {
		cores[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, broken := range slices.Concat(overfullNodes(r.events, cores), partialGangs(r.events)) {
		t.Error(broken)
	}
}

// overfullNodes says when the Pods on a node requested more thousandths of a core than it has. A
// Pod takes room from its binding until its containers have ended or it is gone.
func overfullNodes(events []event, cores map[string]int64) []string {
	var broken []string
	placed := map[string]map[types.UID]int64{}
	for _, e := range events {
		if e.pod == nil || e.pod.Spec.NodeName == "" {
			continue
		}
		node := e.pod.Spec.NodeName
		if placed[node] == nil {
			placed[node] = map[types.UID]int64{}
		}
		if e.gone || hasEnded(e.pod) {
			delete(placed[node], e.pod.UID)
			continue
		}
		if _, known := placed[node][e.pod.UID]; known {
			continue
		}
		placed[node][e.pod.UID] = requestedCores(e.pod)
		var sum int64
		for requested := range maps.Values(placed[node]) {
			sum += requested
		}
		if sum > cores[node] {
			broken = append(broken, fmt.Sprintf("node %s has %dm cores, and with Pod %s its Pods request %dm", node, cores[node], e.pod.Name, sum))
		}
	}
	return broken
}

// partialGangs says which gangs of Frameworks have fewer Pods on nodes than the gang needs, and
// more than none, at the end of a history.
func partialGangs(events []event) []string {
	frameworks := map[string]*frameworkv1.Framework{}
	pods := map[types.UID]*corev1.Pod{}
	for _, e := range events {
		switch {
		case e.framework != nil && e.gone:
			delete(frameworks, e.framework.Name)
		case e.framework != nil:
			frameworks[e.framework.Name] = e.framework
		case e.pod != nil && e.gone:
			delete(pods, e.pod.UID)
		case e.pod != nil:
			pods[e.pod.UID] = e.pod
		}
	}
	// Pods that have ended were placed.
	placed := map[string]int{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			placed[pod.Annotations[frameworkv1.KeyFrameworkName]]++
		}
	}
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(frameworks)) {
		fw := frameworks[name]
		if fw.Spec.Gang == nil {
			continue
		}
		if need := gangSize(fw); placed[name] > 0 && placed[name] < need {
			broken = append(broken, fmt.Sprintf("%d Pods of the gang of Framework %s are placed, and it needs %d", placed[name], name, need))
		}
	}
	return broken
}

func gangSize(fw *frameworkv1.Framework) int {
	if fw.Spec.Gang.MinMember != nil {
		return int(*fw.Spec.Gang.MinMember)
	}
	size := 0
	for _, role := range fw.Spec.TaskRoles {
		size += int(role.TaskNumber)
	}
	return size
}

func requestedCores(pod *corev1.Pod) int64 {
	var sum int64
	for _, container := range pod.Spec.Containers {
		sum += container.Resources.Requests.Cpu().MilliValue()
	}
	return sum
}
