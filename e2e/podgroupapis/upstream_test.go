//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// urgent is the PriorityClass of Pods of a higher priority.
const urgent = "podgroupapis-urgent"

// TestTheScenariosOfSchedulerPlugins are those by which scheduler-plugins tests its own coscheduling plugin
// (test/integration/coscheduling_test.go of 0.34.7): the same gangs and Pods have the same outcome here, but for the one that says so.
//
// A Pod is written as the name of its gang, "-" for none, and the cores that it asks for; "!" makes it urgent. Pods are created in
// the order in which they are written.
func TestTheScenariosOfSchedulerPlugins(t *testing.T) {
	t.Parallel()
	cluster.CreateClass(t, urgent, 100)
	for name, tc := range map[string]struct {
		nodes     []int // Cores of each. Default: one node of 6.
		minima    map[string]int64
		resources map[string]string // minResources, in cores.
		pods      string
		placed    string // The gang all of whose Pods are placed, or "-" for the Pods without one. Nothing is placed of others.
		ended     string // A Pod that has succeeded before the others come.
	}{
		"of two gangs, one after the other, the one that has room is placed": {
			minima: map[string]int64{"a": 3, "b": 4}, pods: "a1 a1 a1 b2 b2 b2 b2", placed: "a"},
		"of two gangs whose Pods come in turns, the one that has room is placed": {
			minima: map[string]int64{"a": 3, "b": 4}, pods: "a1 b2 a1 b2 a1 b2 b2", placed: "a"},
		"a gang that lacks a Pod leaves the room to ordinary Pods": {
			minima: map[string]int64{"a": 4}, pods: "a1 -2 a1 -2 a1", placed: "-"},
		"an urgent gang that comes later has its place": {
			minima: map[string]int64{"a": 3, "b": 3}, pods: "a2 a2 a2 b1! b1! b1!", placed: "b"},
		"an urgent gang whose Pods come in turns with others has its place": {
			minima: map[string]int64{"a": 3, "b": 3}, pods: "a2 b1! a2 b1! a2 b1!", placed: "b"},
		"urgent ordinary Pods have their places": {
			minima: map[string]int64{"a": 3}, pods: "a1 -2! a1 -2! a1 -2!", placed: "-"},
		"of three gangs whose Pods come in turns, the one that has room is placed": {
			minima: map[string]int64{"a": 3, "b": 4, "c": 4}, pods: "a1 b2 c2 a1 b2 c2 a1 b2 c2 b2 c2", placed: "a"},
		"of three gangs with minResources, the one that has room is placed": {
			minima: map[string]int64{"a": 3, "b": 4, "c": 4}, resources: map[string]string{"a": "3", "b": "8", "c": "8"},
			pods: "a1 b2 c2 a1 b2 c2 a1 b2 c2 b2 c2", placed: "a"},
		"of two gangs with minResources, the one that has room is placed": {
			minima: map[string]int64{"a": 3, "b": 4}, resources: map[string]string{"a": "3", "b": "8"},
			pods: "a1 b2 a1 b2 a1 b2 b2", placed: "a"},
		// There a Pod that has succeeded does not count, and the five wait. Here its work is done, and the gang goes on.
		"a Pod that has succeeded counts": {
			minima: map[string]int64{"a": 6}, ended: "a1", pods: "a1 a1 a1 a1 a1", placed: "a"},
		"a large gang that has no room holds up no small one": {
			nodes: []int{6, 2, 2, 2}, minima: map[string]int64{"a": 6, "b": 1}, pods: "a4 a4 a4 a4 a4 a4 b2", placed: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			if tc.nodes == nil {
				tc.nodes = []int{6}
			}
			room := cluster.Room(t, tc.nodes...)
			for gang, minimum := range tc.minima {
				spec := map[string]any{"minMember": minimum}
				if cores := tc.resources[gang]; cores != "" {
					spec["minResources"] = map[string]any{"cpu": cores}
				}
				cluster.createGroupOfPlugins(t, namespace, gang, "", spec)
			}
			if tc.ended != "" {
				cluster.createEnded(t, namespace, podOfScenario("ended", tc.ended, room))
			}
			for i, text := range strings.Fields(tc.pods) {
				cluster.CreatePod(t, namespace, podOfScenario(fmt.Sprint("pod-", i), text, room))
			}
			testbed.Eventually(t, "all of "+tc.placed+" to be placed, and nothing else", func(ctx context.Context) (bool, string, error) {
				pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "scenario"})
				if err != nil {
					return false, "", err
				}
				said, right := "", true
				for i := range pods.Items {
					pod := &pods.Items[i]
					has := pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
					said += fmt.Sprintf("%s: %t ", pod.Name, has)
					right = right && ((strings.ReplaceAll(tc.placed, "-", "none") == pod.Labels["scenario"]) == has)
				}
				return right, said, nil
			})
		})
	}
}

// podOfScenario returns a Pod that is written as in TestTheScenariosOfSchedulerPlugins.
func podOfScenario(name, text string, room *testbed.Room) *corev1.Pod {
	gang, cores := text[:1], int(text[1]-'0')
	return testbed.MakePod(name, room.Confine, testbed.WithCores(cores), func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"scenario": strings.ReplaceAll(gang, "-", "none")}
		if gang != "-" {
			pod.Labels[label] = gang
		}
		if strings.HasSuffix(text, "!") {
			pod.Spec.PriorityClassName = urgent
		}
	})
}

// createEnded creates a Pod on a node that suits it, and waits until the Pod has succeeded.
func (c *testCluster) createEnded(t *testing.T, namespace string, pod *corev1.Pod) {
	t.Helper()
	nodes, err := c.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: labels.SelectorFromSet(pod.Spec.NodeSelector).String()})
	if err != nil {
		t.Fatal(err)
	}
	runsFor(0)(pod)
	pod.Spec.NodeName = nodes.Items[0].Name
	c.CreatePod(t, namespace, pod)
	testbed.Eventually(t, "Pod "+pod.Name+" to succeed", func(ctx context.Context) (bool, string, error) {
		got, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return got.Status.Phase == corev1.PodSucceeded, string(got.Status.Phase), nil
	})
}
