// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// GangScheduler is the scheduler that places gangs.
const GangScheduler = "lockstep-scheduler"

// MakePod makes a Pod for GangScheduler and simulated nodes. It requests one core, never ends
// by itself, and belongs to no group.
func MakePod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: GangScheduler,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "lockstep.dev/simulated:any",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// InGroup has a Pod be in a PodGroup.
func InGroup(group string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: group} }
}

// WithCores has a Pod request n cores.
func WithCores(n int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
}

// CreatePod creates a Pod.
func (c *Cluster) CreatePod(t testing.TB, namespace string, pod *corev1.Pod) {
	t.Helper()
	if _, err := c.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// CreateGroup creates a PodGroup without a Framework.
func (c *Cluster) CreateGroup(t testing.TB, namespace, name string, minMember int32, change ...func(*schedulingv1alpha1.PodGroupSpec)) {
	t.Helper()
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: minMember},
	}
	for _, change := range change {
		change(&group.Spec)
	}
	if _, err := c.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// WaitMembersPlaced waits until exactly n members of a group have a node and are not being
// deleted.
func (c *Cluster) WaitMembersPlaced(t testing.TB, namespace, group string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d members of %s to be placed", n, group), func(ctx context.Context) (bool, string, error) {
		pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: schedulingv1alpha1.LabelPodGroup + "=" + group})
		if err != nil {
			return false, "", err
		}
		placed := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" && pods.Items[i].DeletionTimestamp == nil {
				placed++
			}
		}
		return placed == n, fmt.Sprintf("%d of %d", placed, len(pods.Items)), nil
	})
}

// WaitGroupTold waits until a group's condition Unschedulable holds, with a message that
// contains text.
func (c *Cluster) WaitGroupTold(t testing.TB, namespace, group, text string) {
	t.Helper()
	c.WaitPodGroup(t, namespace, group, fmt.Sprintf("be told …%s…", text), func(pg *schedulingv1alpha1.PodGroup) bool {
		return slices.ContainsFunc(pg.Status.Conditions, func(condition schedulingv1alpha1.PodGroupCondition) bool {
			return condition.Type == schedulingv1alpha1.ConditionUnschedulable && condition.Status == metav1.ConditionTrue &&
				strings.Contains(condition.Message, text)
		})
	})
}
