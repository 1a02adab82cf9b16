//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// writers is how many objects a test creates or ends at the same time.
const writers = 20

// member is a Pod of a group that requests one core and never ends by itself.
func member(group string, i int, change ...func(*corev1.Pod)) *corev1.Pod {
	return testbed.MakePod(fmt.Sprintf("%s-%d", group, i), append([]func(*corev1.Pod){testbed.InGroup(group)}, change...)...)
}

// members are n Pods of a group.
func members(group string, n int, change ...func(*corev1.Pod)) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = member(group, i, change...)
	}
	return pods
}

// forAll does something for each Pod, many at a time.
func forAll(t *testing.T, pods []*corev1.Pod, do func(context.Context, *corev1.Pod) error) {
	t.Helper()
	errs := make([]error, len(pods))
	workqueue.ParallelizeUntil(t.Context(), writers, len(pods), func(i int) { errs[i] = do(t.Context(), pods[i]) })
	for i, err := range errs {
		if err != nil {
			t.Fatalf("Pod %s: %v", pods[i].Name, err)
		}
	}
}

func createPods(t *testing.T, namespace string, pods []*corev1.Pod) {
	t.Helper()
	forAll(t, pods, func(ctx context.Context, pod *corev1.Pod) error {
		_, err := cluster.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// deletePods deletes Pods at once.
func deletePods(t *testing.T, namespace string, pods []*corev1.Pod) {
	t.Helper()
	zero := int64(0)
	forAll(t, pods, func(ctx context.Context, pod *corev1.Pod) error {
		return cluster.Kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	})
}

// endPods has Pods succeed, as their kubelet would say it.
func endPods(t *testing.T, namespace string, pods []*corev1.Pod) {
	t.Helper()
	forAll(t, pods, func(ctx context.Context, pod *corev1.Pod) error {
		_, err := cluster.Kube.CoreV1().Pods(namespace).Patch(ctx, pod.Name, "application/merge-patch+json",
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		return err
	})
}

// gangs are the members of each group, those that have a node and all.
type gangs map[string][]*corev1.Pod

func gangsIn(ctx context.Context, namespace string) (placed, all gangs, err error) {
	list, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: schedulingv1alpha1.LabelPodGroup})
	if err != nil {
		return nil, nil, err
	}
	placed, all = gangs{}, gangs{}
	for i := range list.Items {
		pod := &list.Items[i]
		group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
		all[group] = append(all[group], pod)
		if pod.Spec.NodeName != "" {
			placed[group] = append(placed[group], pod)
		}
	}
	return placed, all, nil
}

// count is how many members there are in all.
func (g gangs) count() int {
	n := 0
	for _, pods := range g {
		n += len(pods)
	}
	return n
}

// whole are the groups that have n members.
func (g gangs) whole(n int) []string {
	var names []string
	for name, pods := range g {
		if len(pods) == n {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// String says how many members each group has.
func (g gangs) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, len(g[name])))
	}
	return strings.Join(parts, ", ")
}

// waitPlaced waits until a number of members have a node, and returns them.
func waitPlaced(t *testing.T, namespace string, n int) gangs {
	t.Helper()
	var placed gangs
	testbed.Eventually(t, fmt.Sprintf("%d members to be placed", n), func(ctx context.Context) (bool, string, error) {
		var err error
		placed, _, err = gangsIn(ctx, namespace)
		return placed.count() == n, placed.String(), err
	})
	return placed
}

// waitUnschedulable waits until a group says that it waits for a reason, with a
// message that contains text.
func waitUnschedulable(t *testing.T, namespace, group, reason, text string) {
	t.Helper()
	what := fmt.Sprintf("be unschedulable for %s: …%s…", reason, text)
	cluster.WaitPodGroup(t, namespace, group, what, func(pg *schedulingv1alpha1.PodGroup) bool {
		return slices.ContainsFunc(pg.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
			return c.Type == schedulingv1alpha1.ConditionUnschedulable && c.Status == metav1.ConditionTrue &&
				c.Reason == reason && strings.Contains(c.Message, text)
		})
	})
}
