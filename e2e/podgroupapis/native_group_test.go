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
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// withNative is the cluster whose API server serves PodGroups of Kubernetes, and makes some for Jobs. When the scheduler
// starts there, the kind of scheduler-plugins is not installed. It is installed before any test.
var withNative = startedBeside(localenv.Options{
	SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "none", Audit: true,
	RuntimeConfig: "scheduling.k8s.io/v1beta1=true",
	FeatureGates:  "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,WorkloadWithJob=true,DRAWorkloadResourceClaims=true",
}, func(ctx context.Context, c *testCluster) error {
	if err := c.ApplyManifests(ctx, rightsOfNative, rightsOfSchedulerPlugins); err != nil {
		return err
	}
	options := localenv.SchedulerOptions{AlsoServes: []string{ofVolcano}}
	if err := c.runScheduler(ctx, options); err != nil {
		return err
	}
	if err := c.scheduler.WaitLog(ctx, isOn(dialect.Native)); err != nil {
		return err
	}
	if err := c.scheduler.WaitLog(ctx, "its CustomResourceDefinition is not installed"); err != nil {
		return err
	}
	if err := comeEarly(ctx, c); err != nil {
		return err
	}
	if err := c.installKind(ctx, upstream.SchedulerPlugins, dialect.SchedulerPlugins.CRD()); err != nil {
		return err
	}
	if err := c.awaitRestart(ctx, options); err != nil {
		return err
	}
	return c.scheduler.WaitLog(ctx, isOn(dialect.SchedulerPlugins))
})

// nativeGang returns the spec of a gang of minCount members.
func nativeGang(minCount int32) schedulingv1beta1.PodGroupSpec {
	return schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
		Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}}}
}

// nativeBasic returns the spec of a group that is no gang.
func nativeBasic() schedulingv1beta1.PodGroupSpec {
	return schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}}
}

// createNativeGroup creates a PodGroup of Kubernetes.
func (c *testCluster) createNativeGroup(t *testing.T, namespace, name string, spec schedulingv1beta1.PodGroupSpec) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := c.Kube.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{FieldManager: "tool"}); err != nil {
		t.Fatal(err)
	}
}

// inNativeGroup has a Pod name a PodGroup of Kubernetes.
func inNativeGroup(group string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
}

// waitSays waits until a condition of a PodGroup of Kubernetes begins with a text: "type=status reason: message".
func (c *testCluster) waitSays(t *testing.T, namespace, name, begins string) *schedulingv1beta1.PodGroup {
	t.Helper()
	var group *schedulingv1beta1.PodGroup
	testbed.Eventually(t, "PodGroup "+name+" to say "+begins, func(ctx context.Context) (bool, string, error) {
		var err error
		group, err = c.Kube.SchedulingV1beta1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
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

// sayings returns the conditions of a group as waitSays reads them.
func sayings(group *schedulingv1beta1.PodGroup) []string {
	var says []string
	for _, condition := range group.Status.Conditions {
		says = append(says, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	return says
}

// isPlaced fails the test if another number of Pods of a namespace has a node.
func (c *testCluster) isPlaced(t *testing.T, namespace string, want int) {
	t.Helper()
	if names, err := c.Placed(t.Context(), namespace); err != nil || len(names) != want {
		t.Errorf("%v are placed, want %d Pods (%v)", names, want, err)
	}
}
