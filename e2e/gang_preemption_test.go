//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func ofClass(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
}

// left are the members of a group that are neither gone nor being deleted.
func left(ctx context.Context, namespace, group string) ([]*corev1.Pod, error) {
	_, all, err := gangsIn(ctx, namespace)
	return slices.DeleteFunc(all[group], func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }), err
}

// waitGangPlaced waits until a number of members of a group have a node.
func waitGangPlaced(t *testing.T, namespace, group string, n int) {
	t.Helper()
	testbed.Eventually(t, fmt.Sprintf("%d members of gang %s to be placed", n, group), func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, namespace)
		return len(placed[group]) == n, placed.String(), err
	})
}

// TestGangPreemptsAGang: on nodes full of gangs of low priority, a gang takes the
// place of one of them, whole, and leaves the others alone.
func TestGangPreemptsAGang(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	for g := range 10 {
		cluster.CreateGroup(t, namespace, fmt.Sprintf("low%d", g), 5)
		createPods(t, namespace, members(fmt.Sprintf("low%d", g), 5, testbed.WithCores(coresOfNode/5)))
	}
	waitPlaced(t, namespace, 50)

	cluster.CreateGroup(t, namespace, "high", 5)
	createPods(t, namespace, members("high", 5, testbed.WithCores(coresOfNode/5), ofClass("e2e-high")))
	waitGangPlaced(t, namespace, "high", 5)
	testbed.Consistently(t, "that one gang has gone, and none in part", 2*time.Second, func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, namespace)
		return len(placed) == 10 && len(placed.whole(5)) == 10, placed.String(), err
	})
}

// TestGangPreemptsOnlySurplus: a gang that has more than its minimum gives up
// just that.
func TestGangPreemptsOnlySurplus(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	cluster.CreateGroup(t, namespace, "elastic", 6)
	createPods(t, namespace, members("elastic", 10, testbed.WithCores(coresOfNode)))
	waitPlaced(t, namespace, 10)

	cluster.CreateGroup(t, namespace, "high", 3)
	createPods(t, namespace, members("high", 3, testbed.WithCores(coresOfNode), ofClass("e2e-high")))
	waitGangPlaced(t, namespace, "high", 3)
	pods, err := left(t.Context(), namespace, "elastic")
	if err != nil || len(pods) != 7 {
		t.Errorf("%d of 10 members of the elastic gang are left, want 7 (%v)", len(pods), err)
	}
}

// TestGangPreemptsNobodyInVain: it would not fit without all of them either.
func TestGangPreemptsNobodyInVain(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	cluster.CreateGroup(t, namespace, "low", 4)
	createPods(t, namespace, members("low", 4, testbed.WithCores(coresOfNode)))
	waitPlaced(t, namespace, 4)

	cluster.CreateGroup(t, namespace, "high", nodes+1)
	createPods(t, namespace, members("high", nodes+1, testbed.WithCores(coresOfNode), ofClass("e2e-high")))
	waitUnschedulable(t, namespace, "high", schedulingv1alpha1.ReasonNotEnoughResources, "there is room for 6 of the 11")
	testbed.Consistently(t, "that the low gang stays", 2*time.Second, func(ctx context.Context) (bool, string, error) {
		pods, err := left(ctx, namespace, "low")
		return len(pods) == 4, fmt.Sprint(len(pods)), err
	})
}

// TestGangSparesPodsThatABudgetProtects, as long as others do.
func TestGangSparesPodsThatABudgetProtects(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	minAvailable := intstr.FromInt32(5)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "protected"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &minAvailable,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "protected"}},
		},
	}
	if _, err := cluster.Kube.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"protected", "other"} {
		cluster.CreateGroup(t, namespace, group, 5)
		createPods(t, namespace, members(group, 5, testbed.WithCores(coresOfNode)))
	}
	waitPlaced(t, namespace, 10)
	cluster.CreateGroup(t, namespace, "high", 2)
	createPods(t, namespace, members("high", 2, testbed.WithCores(coresOfNode), ofClass("e2e-high")))
	waitGangPlaced(t, namespace, "high", 2)
	if pods, err := left(t.Context(), namespace, "protected"); err != nil || len(pods) != 5 {
		t.Errorf("%d of 5 protected Pods are left (%v)", len(pods), err)
	}
}

// TestOrdinaryPodTakesAGangWholeOrNotAtAll.
func TestOrdinaryPodTakesAGangWholeOrNotAtAll(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	cluster.CreateClass(t, "e2e-higher", 2000)
	ordinary := func(name, class string) *corev1.Pod {
		return member(name, 0, testbed.WithCores(coresOfNode), ofClass(class), func(pod *corev1.Pod) { pod.Labels = nil })
	}
	// The group outranks its own members, but for one.
	cluster.CreateGroup(t, namespace, "gang", nodes, func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = "e2e-high" })
	gang := members("gang", nodes, testbed.WithCores(coresOfNode))
	gang[0].Spec.PriorityClassName = "e2e-high"
	createPods(t, namespace, gang)
	waitPlaced(t, namespace, nodes)

	createPods(t, namespace, []*corev1.Pod{ordinary("equal", "e2e-high")})
	testbed.Consistently(t, "that the gang stays for a Pod of equal priority", 3*time.Second, func(ctx context.Context) (bool, string, error) {
		pods, err := left(ctx, namespace, "gang")
		return len(pods) == nodes, fmt.Sprint(len(pods)), err
	})
	createPods(t, namespace, []*corev1.Pod{ordinary("above", "e2e-higher")})
	testbed.Eventually(t, "the whole gang to go for a Pod of higher priority", func(ctx context.Context) (bool, string, error) {
		pods, err := left(ctx, namespace, "gang")
		return len(pods) == 0, fmt.Sprint(len(pods)), err
	})
}

// TestAPodGroupNamesAClassAboveThatOfItsPods: Pods of a higher class than theirs run on
// all nodes, and stay, in another namespace.
func TestAPodGroupNamesAClassAboveThatOfItsPods(t *testing.T) {
	theirs, namespace := cluster.Namespace(t), cluster.Namespace(t)
	cluster.CreateClass(t, "e2e-high", 1000)
	createPods(t, theirs, members("ordinary", nodes, testbed.WithCores(coresOfNode), ofClass("e2e-high"), func(pod *corev1.Pod) { pod.Labels = nil }))
	testbed.Eventually(t, "ordinary Pods to be on all nodes", func(ctx context.Context) (bool, string, error) {
		placed, err := onNodes(ctx, theirs)
		return placed == nodes, fmt.Sprint(placed), err
	})
	cluster.CreateGroup(t, namespace, "gang", 1, func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = "system-node-critical" })
	createPods(t, namespace, members("gang", 1))
	waitUnschedulable(t, namespace, "gang", schedulingv1alpha1.ReasonNotEnoughResources, "there is room for 0 of the 1 members")
	testbed.Eventually(t, "an event that says so", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=reason=PriorityClassCapped", "-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, "the group ranks with the priority 0"), out, err
	})
	if placed, err := onNodes(t.Context(), theirs); err != nil || placed != nodes {
		t.Errorf("%d of %d ordinary Pods are left (%v)", placed, nodes, err)
	}
}

// onNodes counts the Pods of a namespace that have a node and are not being deleted.
func onNodes(ctx context.Context, namespace string) (int, error) {
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n, nil
}

// TestTwoGroupsOfOneNameInTwoNamespaces share nothing.
func TestTwoGroupsOfOneNameInTwoNamespaces(t *testing.T) {
	one, two := cluster.Namespace(t), cluster.Namespace(t)
	cluster.CreateGroup(t, one, "gang", 3)
	cluster.CreateGroup(t, two, "gang", 2)
	createPods(t, one, members("gang", 2))
	createPods(t, two, members("gang", 2))
	waitPlaced(t, two, 2)
	waitUnschedulable(t, one, "gang", schedulingv1alpha1.ReasonNotEnoughTasks, "2 of at least 3 members exist")
}
