//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// runsForAnHour has a gang have room reserved at once.
func runsForAnHour(spec *schedulingv1alpha1.PodGroupSpec) {
	spec.ExpectedRuntimeSeconds = ptr.To[int32](3600)
}

// create creates a Pod with a number of cores that ends when it is deleted.
func create(t *testing.T, namespace, name string, cores int, change ...func(*corev1.Pod)) {
	t.Helper()
	cluster.CreatePod(t, namespace, testbed.MakePod(name, append(change, testbed.WithCores(cores))...))
}

// onNode names the node of a Pod.
func onNode(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
}

// TestAServiceIsRolledOutBesideAGangThatStarves: the gang waits for Pods of jobs on nodes
// that are full of a service.
func TestAServiceIsRolledOutBesideAGangThatStarves(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	namespace := cluster.Namespace(t)
	ctx := t.Context()
	replicas, unavailable, surge := int32(16), intstr.FromInt32(4), intstr.FromInt32(0)
	labels := map[string]string{"app": "service"}
	pods := testbed.MakePod("").Spec
	pods.RestartPolicy = corev1.RestartPolicyAlways
	service := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "service"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pods},
		},
	}
	if _, err := cluster.Kube.AppsV1().Deployments(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, namespace)
	for i := range nodes * coresOfNode / 2 {
		create(t, namespace, fmt.Sprintf("job-%d", i), 1)
	}
	testbed.Eventually(t, "the cluster to be full", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		placed := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
		return len(placed) == nodes*coresOfNode, fmt.Sprint(len(placed)), nil
	})
	cluster.CreateGroup(t, namespace, "gang", 2, runsForAnHour)
	create(t, namespace, "gang-0", 2, testbed.InGroup("gang"))
	create(t, namespace, "gang-1", 2, testbed.InGroup("gang"))
	cluster.WaitGroupTold(t, namespace, "gang", "resources are reserved for it")

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
	cluster.WaitMembersPlaced(t, namespace, "gang", 2)
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

// TestManySmallGangsDoNotStarveABigOne: those that are younger leave alone what others give up, until it fits.
func TestManySmallGangsDoNotStarveABigOne(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	namespace := cluster.Namespace(t)
	join := func(node string) {
		t.Helper()
		patch := []byte(`{"metadata":{"labels":{"pool":"small"}}}`)
		if _, err := cluster.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	join("sim-0")
	join("sim-1")
	inPool := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"pool": "small"} }
	small := func(name string) {
		cluster.CreateGroup(t, namespace, name, 1)
		create(t, namespace, name+"-0", coresOfNode/2, testbed.InGroup(name), inPool)
	}
	// Each of the two nodes may hold one of these, or one node both.
	for _, name := range []string{"small0", "small1"} {
		small(name)
		cluster.WaitMembersPlaced(t, namespace, name, 1)
	}
	cluster.CreateGroup(t, namespace, "big", 2, runsForAnHour)
	create(t, namespace, "big-0", coresOfNode, testbed.InGroup("big"), inPool)
	create(t, namespace, "big-1", coresOfNode, testbed.InGroup("big"), inPool)
	cluster.WaitGroupTold(t, namespace, "big", "resources are reserved for it")

	small("small2")
	cluster.WaitGroupTold(t, namespace, "small2", "resources are reserved for PodGroup "+namespace+"/big")
	cluster.DeletePod(t, namespace, "small0-0")
	cluster.DeletePod(t, namespace, "small1-0")
	cluster.WaitMembersPlaced(t, namespace, "big", 2)
	// Smaller work runs where it is in nobody's way.
	cluster.WaitMembersPlaced(t, namespace, "small2", 0)
	join("sim-2")
	cluster.WaitMembersPlaced(t, namespace, "small2", 1)
}

// TestAGangThatFitsNowhereKeepsNoOtherFromBeingHelped: small Pods keep the nodes full, and
// an older gang asks for a node that does not exist.
func TestAGangThatFitsNowhereKeepsNoOtherFromBeingHelped(t *testing.T) {
	cluster.SchedulerFor(t, localenv.SchedulerOptions{})
	namespace := cluster.Namespace(t)
	for i := range nodes {
		create(t, namespace, fmt.Sprintf("job-%d", i), coresOfNode, onNode(fmt.Sprintf("sim-%d", i)))
	}
	cluster.CreateGroup(t, namespace, "nowhere", 1, runsForAnHour)
	create(t, namespace, "nowhere-0", 1, testbed.InGroup("nowhere"), func(pod *corev1.Pod) {
		pod.Spec.NodeSelector = map[string]string{"no": "such"}
	})
	cluster.WaitGroupTold(t, namespace, "nowhere", "there is room for 0")
	cluster.CreateGroup(t, namespace, "gang", 2, runsForAnHour)
	create(t, namespace, "gang-0", coresOfNode, testbed.InGroup("gang"))
	create(t, namespace, "gang-1", coresOfNode, testbed.InGroup("gang"))
	cluster.WaitGroupTold(t, namespace, "gang", "resources are reserved for it")
	for i := range nodes {
		cluster.DeletePod(t, namespace, fmt.Sprintf("job-%d", i))
	}
	cluster.WaitMembersPlaced(t, namespace, "gang", 2)
}
