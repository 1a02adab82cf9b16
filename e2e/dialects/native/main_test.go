//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package native tests the PodGroups of Kubernetes itself, on an API server that serves them and
// on one that does not.
package native

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// served are the options of a control plane that serves PodGroups, and makes some for Jobs.
var served = localenv.Options{
	SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "none", Audit: true,
	RuntimeConfig: "scheduling.k8s.io/v1beta1=true",
	FeatureGates:  "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,WorkloadWithJob=true,DRAWorkloadResourceClaims=true",
}

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, served, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		return start(ctx, c, `group="scheduling.k8s.io" on=true mode="Auto" reason="served"`)
	}))
}

// start starts a scheduler with the rights to serve PodGroups of Kubernetes, and waits until it says
// what it does about them.
func start(ctx context.Context, c *testbed.Cluster, line string) error {
	if err := c.ApplyManifests(ctx, "dialects/native.yaml"); err != nil {
		return err
	}
	scheduler, err := c.StartScheduler(ctx, "")
	if err != nil {
		return err
	}
	return scheduler.WaitLog(ctx, line)
}

// gang is the spec of a gang of n members.
func gang(minCount int32) schedulingv1beta1.PodGroupSpec {
	return schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
		Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}}}
}

// basic is the spec of a group that asks for nothing.
func basic() schedulingv1beta1.PodGroupSpec {
	return schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}}
}

// create creates a PodGroup.
func create(t *testing.T, namespace, name string, spec schedulingv1beta1.PodGroupSpec) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := cluster.Kube.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{FieldManager: "tool"}); err != nil {
		t.Fatal(err)
	}
}

// named has a Pod name a PodGroup.
func named(group string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
}

// runsFor has a Pod end with success after a number of seconds.
func runsFor(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{jobs.AnnotationRunSeconds: fmt.Sprint(seconds), jobs.AnnotationExitCode: "0"}
	}
}

// waitSays waits until a condition of a group begins so: "type=status reason: message".
func waitSays(t *testing.T, namespace, name, begins string) *schedulingv1beta1.PodGroup {
	t.Helper()
	var group *schedulingv1beta1.PodGroup
	testbed.EventuallyWithin(t, time.Minute, "PodGroup "+name+" to say "+begins, func(ctx context.Context) (bool, string, error) {
		var err error
		group, err = cluster.Kube.SchedulingV1beta1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		says := sayings(group)
		for _, said := range says {
			if strings.HasPrefix(said, begins) {
				return true, "", nil
			}
		}
		return false, strings.Join(says, "; "), nil
	})
	return group
}

// sayings are the conditions of a group.
func sayings(group *schedulingv1beta1.PodGroup) []string {
	var says []string
	for _, c := range group.Status.Conditions {
		says = append(says, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return says
}

// isPlaced fails the test if another number of Pods of a namespace has a node.
func isPlaced(t *testing.T, namespace string, want int) {
	t.Helper()
	if names, err := cluster.Placed(t.Context(), namespace); err != nil || len(names) != want {
		t.Errorf("%v are placed, want %d Pods (%v)", names, want, err)
	}
}
