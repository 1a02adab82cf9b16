//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// createGang creates a group and as many Pods as it needs, each for a whole node.
func createGang(t *testing.T, namespace, name string, n int, change func(*corev1.Pod), changeGroup ...func(*schedulingv1alpha1.PodGroupSpec)) {
	t.Helper()
	cluster.CreateGroup(t, namespace, name, int32(n), changeGroup...)
	for i := range n {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("%s-%d", name, i), testbed.InGroup(name), testbed.WithCores(coresOfNode), endingSoon, change))
	}
}

// endingSoon has a Pod be gone a second after it is deleted.
func endingSoon(pod *corev1.Pod) {
	one := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &one
}

// low makes a gang one that others preempt, and of which no Pod is gone before the test says
// so.
func low(pod *corev1.Pod) { pod.Finalizers, pod.Labels[jobs.Hold] = []string{jobs.Hold}, "true" }

func ofHighClass(pod *corev1.Pod) { pod.Spec.PriorityClassName = high }

func inOneRack(group *schedulingv1alpha1.PodGroupSpec) {
	group.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: rackLabel, Mode: schedulingv1alpha1.TopologyRequired}}
}

// podsOf are the Pods of a gang.
func podsOf(ctx context.Context, namespace, gang string) ([]corev1.Pod, error) {
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: schedulingv1alpha1.LabelPodGroup + "=" + gang})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// waitPods waits until as many Pods of a gang are so.
func waitPods(t *testing.T, namespace, gang, what string, n int, is func(*corev1.Pod) bool) {
	t.Helper()
	testbed.Eventually(t, fmt.Sprintf("%d Pods of %s to be %s", n, gang, what), func(ctx context.Context) (bool, string, error) {
		pods, err := podsOf(ctx, namespace, gang)
		found := 0
		for i := range pods {
			if is(&pods[i]) {
				found++
			}
		}
		return found == n, fmt.Sprintf("%d of %d", found, len(pods)), err
	})
}

func isPlaced(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
func isOnNewNode(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Spec.NodeName, newNodes)
}
func isEnding(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }
func isNominated(pod *corev1.Pod) bool {
	return pod.Status.NominatedNodeName != "" && isUnschedulable(pod)
}

// waitDenominated waits until no Pod of a gang is nominated.
func waitDenominated(t *testing.T, namespace, gang string) {
	t.Helper()
	testbed.Eventually(t, "nobody of "+gang+" to be nominated", func(ctx context.Context) (bool, string, error) {
		pods, err := podsOf(ctx, namespace, gang)
		return err == nil && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.NominatedNodeName != "" }), "", err
	})
}

// consistently has nodes stay as many as they are, and nobody of a gang be evicted.
func consistently(t *testing.T, a *autoscaler, namespace, gang string, wantNodes int, d time.Duration) {
	t.Helper()
	testbed.Consistently(t, fmt.Sprintf("that %d nodes are added and %s stays", wantNodes, gang), d, func(ctx context.Context) (bool, string, error) {
		pods, err := podsOf(ctx, namespace, gang)
		evicted := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return isEnding(&p) })
		return !evicted && len(a.nodes()) == wantNodes, fmt.Sprintf("added %v", a.nodes()), err
	})
}

// TestNoNodeIsAddedWhileVictimsEnd: the gang of low priority takes twenty seconds to go.
func TestNoNodeIsAddedWhileVictimsEnd(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	autoscaler := startAutoscaler(t)
	namespace := cluster.Namespace(t)
	createGang(t, namespace, "low", nodes, low)
	waitPods(t, namespace, "low", "placed", nodes, isPlaced)
	createGang(t, namespace, "high", 2, ofHighClass)
	waitPods(t, namespace, "high", "nominated", 2, isNominated)
	waitPods(t, namespace, "low", "ending", nodes, isEnding)
	consistently(t, autoscaler, namespace, "high", 0, 20*time.Second)
	cluster.Release(t, namespace)
	waitPods(t, namespace, "high", "placed", 2, isPlaced)
	waitDenominated(t, namespace, "high")
	consistently(t, autoscaler, namespace, "high", 0, 3*time.Second)
}

// TestNodesAreAddedForAGangThatPreemptionDoesNotHelp: there is room for two of three members
// in a rack, whoever is evicted. It starts on new nodes, and all others stay.
func TestNodesAreAddedForAGangThatPreemptionDoesNotHelp(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	autoscaler := startAutoscaler(t)
	namespace := cluster.Namespace(t)
	createGang(t, namespace, "low", nodes, low)
	waitPods(t, namespace, "low", "placed", nodes, isPlaced)
	createGang(t, namespace, "high", 3, ofHighClass, inOneRack)
	waitPods(t, namespace, "high", "placed on new nodes", 3, isOnNewNode)
	consistently(t, autoscaler, namespace, "low", 3, 5*time.Second)
}

// TestNodesAreAddedWhenVictimsDoNotEnd: they are waited for until half a minute after their
// grace period.
func TestNodesAreAddedWhenVictimsDoNotEnd(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	autoscaler := startAutoscaler(t)
	namespace := cluster.Namespace(t)
	createGang(t, namespace, "low", nodes, low)
	waitPods(t, namespace, "low", "placed", nodes, isPlaced)
	createGang(t, namespace, "high", 2, ofHighClass)
	waitPods(t, namespace, "high", "nominated", 2, isNominated)
	if added := autoscaler.nodes(); len(added) > 0 {
		t.Errorf("the nodes %v were added while the victims might end", added)
	}
	waitPods(t, namespace, "high", "placed on new nodes", 2, isOnNewNode)
	waitDenominated(t, namespace, "high")
	consistently(t, autoscaler, namespace, "high", 2, 3*time.Second)
}
