//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package starving tests what becomes of gangs that wait for long, and of those beside
// them, on a scheduler for which a few seconds are long.
package starving

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// The cluster has nodes of eight cores.
const (
	nodes       = 4
	coresOfNode = 8
)

// cluster is what the tests share. TestMain sets it once, before any test. They need the
// nodes for themselves, and so run one after the other.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: nodes, NodeCPU: fmt.Sprint(coresOfNode), With: "none",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		_, err := c.StartScheduler(ctx, "starvationAfter: 3s")
		return err
	}))
}

// create creates a Pod of so many cores that ends when it is deleted, on a node if one is
// named; in a group if one is named.
func create(t *testing.T, namespace, group, name, node string, cores int) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       podSpec(cores),
	}
	pod.Spec.RestartPolicy, pod.Spec.NodeName = corev1.RestartPolicyNever, node
	if group != "" {
		pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: group}
	}
	if _, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podSpec(cores int) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: "lockstep-scheduler",
		Containers: []corev1.Container{{
			Name: "main", Image: "lockstep.dev/simulated:any",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cores), resource.DecimalSI)}},
		}},
	}
}

func createGroup(t *testing.T, namespace, name string, least int32) {
	t.Helper()
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: least}}
	if _, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitPlaced waits until just so many members of a group have a node and are not being
// deleted.
func waitPlaced(t *testing.T, namespace, group string, want int) {
	t.Helper()
	testbed.Eventually(t, fmt.Sprintf("%d members of %s to be placed", want, group), func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: schedulingv1alpha1.LabelPodGroup + "=" + group})
		if err != nil {
			return false, "", err
		}
		placed := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" && pods.Items[i].DeletionTimestamp == nil {
				placed++
			}
		}
		return placed == want, fmt.Sprintf("%d of %d", placed, len(pods.Items)), nil
	})
}

// waitTold waits until a group's condition Unschedulable says so.
func waitTold(t *testing.T, namespace, group, text string) {
	t.Helper()
	cluster.WaitPodGroup(t, namespace, group, "to be told: "+text, func(g *schedulingv1alpha1.PodGroup) bool {
		return slices.ContainsFunc(g.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
			return c.Type == schedulingv1alpha1.ConditionUnschedulable && strings.Contains(c.Message, text)
		})
	})
}

// TestAServiceIsRolledOutBesideAGangThatStarves: the gang waits for Pods of jobs on nodes
// that are full of a service.
func TestAServiceIsRolledOutBesideAGangThatStarves(t *testing.T) {
	namespace := cluster.Namespace(t)
	ctx := t.Context()
	replicas, unavailable, surge := int32(16), intstr.FromInt32(4), intstr.FromInt32(0)
	labels := map[string]string{"app": "service"}
	service := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "service"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(1)},
		},
	}
	if _, err := cluster.Kube.AppsV1().Deployments(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, namespace)
	for i := range nodes * coresOfNode / 2 {
		create(t, namespace, "", fmt.Sprintf("job-%d", i), "", 1)
	}
	testbed.Eventually(t, "the cluster to be full", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		placed := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
		return len(placed) == nodes*coresOfNode, fmt.Sprint(len(placed)), nil
	})
	createGroup(t, namespace, "gang", 2)
	create(t, namespace, "gang", "gang-0", "", 2)
	create(t, namespace, "gang", "gang-1", "", 2)
	waitTold(t, namespace, "gang", "room is held back for it")

	service, err := cluster.Kube.AppsV1().Deployments(namespace).Get(ctx, "service", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	service.Spec.Template.Annotations = map[string]string{"version": "2"}
	if _, err := cluster.Kube.AppsV1().Deployments(namespace).Update(ctx, service, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, namespace)
	for i := range nodes * coresOfNode / 2 {
		cluster.DeletePod(t, namespace, fmt.Sprintf("job-%d", i))
	}
	waitPlaced(t, namespace, "gang", 2)
}

// waitRolledOut waits until all Pods of the service are of its last version and available.
func waitRolledOut(t *testing.T, namespace string) {
	t.Helper()
	testbed.Eventually(t, "the service to be rolled out", func(ctx context.Context) (bool, string, error) {
		d, err := cluster.Kube.AppsV1().Deployments(namespace).Get(ctx, "service", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.AvailableReplicas == *d.Spec.Replicas,
			fmt.Sprintf("%d updated, %d available", s.UpdatedReplicas, s.AvailableReplicas), nil
	})
}

// TestAGangThatFitsNowhereKeepsNoOtherFromBeingHelped: small Pods keep the nodes full, and
// an older gang asks for a node that does not exist.
func TestAGangThatFitsNowhereKeepsNoOtherFromBeingHelped(t *testing.T) {
	namespace := cluster.Namespace(t)
	for i := range nodes {
		create(t, namespace, "", fmt.Sprintf("job-%d", i), fmt.Sprintf("sim-%d", i), coresOfNode)
	}
	createGroup(t, namespace, "nowhere", 1)
	nowhere := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "nowhere-0", Labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "nowhere"}}, Spec: podSpec(1)}
	nowhere.Spec.NodeSelector = map[string]string{"no": "such"}
	if _, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), nowhere, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitTold(t, namespace, "nowhere", "there is room for 0")
	createGroup(t, namespace, "gang", 2)
	create(t, namespace, "gang", "gang-0", "", coresOfNode)
	create(t, namespace, "gang", "gang-1", "", coresOfNode)
	waitTold(t, namespace, "gang", "room is held back for it")
	for i := range nodes {
		cluster.DeletePod(t, namespace, fmt.Sprintf("job-%d", i))
	}
	waitPlaced(t, namespace, "gang", 2)
}

// TestTwoBrokenGangsDoNotWaitForEachOther: both have four of five members, and there is no
// room but theirs. The older one is made whole of the room of the other.
func TestTwoBrokenGangsDoNotWaitForEachOther(t *testing.T) {
	namespace := cluster.Namespace(t)
	const cores = nodes * coresOfNode / 8
	gangs := []string{"first", "second"}
	for _, gang := range gangs {
		createGroup(t, namespace, gang, 4)
		for i := range 4 {
			create(t, namespace, gang, fmt.Sprintf("%s-%d", gang, i), "", cores)
		}
		waitPlaced(t, namespace, gang, 4)
	}
	for _, gang := range gangs {
		groups := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace)
		group, err := groups.Get(t.Context(), gang, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		group.Spec.MinMember = 5
		if _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		create(t, namespace, gang, gang+"-4", "", cores)
	}
	waitPlaced(t, namespace, "first", 5)
	waitPlaced(t, namespace, "second", 0)
}
