//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestMembersThatRepelEachOther: required anti-affinity among members holds, and
// a gang that can't have it is not placed in part.
func TestMembersThatRepelEachOther(t *testing.T) {
	apart := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: pod.Labels[schedulingv1alpha1.LabelPodGroup]}},
			}},
		}}
	}
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "fits", nodes)
	cluster.CreateGroup(t, namespace, "toomany", nodes+1)
	createPods(t, namespace, append(members("fits", nodes, apart), members("toomany", nodes+1, apart)...))

	placed := waitPlaced(t, namespace, nodes)
	used := map[string]bool{}
	for _, pod := range placed["fits"] {
		used[pod.Spec.NodeName] = true
	}
	if len(placed["fits"]) != nodes || len(used) != nodes {
		t.Errorf("placed %v on %d nodes, want one member of the first gang on each of %d", placed, len(used), nodes)
	}
	waitUnschedulable(t, namespace, "toomany", schedulingv1alpha1.ReasonNotEnoughResources, fmt.Sprintf("room for %d of the %d members", nodes, nodes+1))
}

// TestGangIsTriedAgainWhenANodeIsUncordoned: a gang that waits for room sees it
// come.
func TestGangIsTriedAgainWhenANodeIsUncordoned(t *testing.T) {
	list, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := list.Items[0].Name
	kubectl := func(ctx context.Context, verb string) {
		t.Helper()
		if out, err := cluster.Kubectl(ctx, verb, node); err != nil {
			t.Errorf("%s %s: %v\n%s", verb, node, err, out)
		}
	}
	kubectl(t.Context(), "cordon")
	t.Cleanup(func() { kubectl(context.Background(), "uncordon") })
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "gang", nodes*coresOfNode)
	createPods(t, namespace, members("gang", nodes*coresOfNode))
	waitUnschedulable(t, namespace, "gang", schedulingv1alpha1.ReasonNotEnoughResources, fmt.Sprintf("short of %d cpu", coresOfNode))
	kubectl(t.Context(), "uncordon")
	waitPlaced(t, namespace, nodes*coresOfNode)
}
