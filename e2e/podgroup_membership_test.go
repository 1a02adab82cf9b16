//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// TestAStrangerInAGangWaits: a gang lacks a member, which is left to a scheduler that
// does not exist. A Pod with the gang's label does not stand in for it, in the
// counters or for the scheduler, and is told so. It runs once the label is gone.
func TestAStrangerInAGangWaits(t *testing.T) {
	fw := jobs.MakeFramework("closed").Gang().
		Role("worker", 2, jobs.RunForever()).
		Role("late", 1, jobs.RunForever().Scheduler("nobody")).Obj()
	namespace := submit(t, fw)
	name := frameworkv1.PodGroupName(fw.Name)
	lacksOne := func(group *schedulingv1alpha1.PodGroup) bool {
		waits := podgroup.Condition(group, schedulingv1alpha1.ConditionUnschedulable)
		return waits != nil && waits.Status == metav1.ConditionTrue &&
			waits.Reason == schedulingv1alpha1.ReasonNotEnoughTasks && group.Status.Members == 3
	}
	cluster.WaitPodGroup(t, namespace, name, "lack a member", lacksOne)

	stranger := member(name, 0)
	createPods(t, namespace, []*corev1.Pod{stranger})
	pods := cluster.Kube.CoreV1().Pods(namespace)
	testbed.Eventually(t, "the stranger to be told why it waits", func(ctx context.Context) (bool, string, error) {
		pod, err := pods.Get(ctx, stranger.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == "NotAMemberOfPodGroup" {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("its conditions are %v", pod.Status.Conditions), nil
	})
	testbed.Eventually(t, "an event that says so", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=involvedObject.name="+stranger.Name, "-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, "no member of PodGroup "+name), out, err
	})

	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Spec.NodeName != "" {
			t.Errorf("%s is on %s, though the gang lacks a member", pod.Name, pod.Spec.NodeName)
		}
	}
	cluster.WaitPodGroup(t, namespace, name, "lack a member all the same", lacksOne)

	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: frameworkv1.PodName(fw.Name, "late", 0)},
		Target:     corev1.ObjectReference{Kind: "Node", Name: anyNode(t)},
	}
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFramework(t, namespace, fw.Name, "run, now that its last member has a place", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	})
	unlabel := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, schedulingv1alpha1.LabelPodGroup)
	if _, err := pods.Patch(t.Context(), stranger.Name, types.MergePatchType, []byte(unlabel), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, "the Pod without the label to be scheduled on its own", func(ctx context.Context) (bool, string, error) {
		pod, err := pods.Get(ctx, stranger.Name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", "it has no node", err
	})
}

// anyNode is the name of a node.
func anyNode(t *testing.T) string {
	t.Helper()
	list, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("listing the nodes: %d found, error %v", len(list.Items), err)
	}
	return list.Items[0].Name
}

// TestAPodWithoutItsPodGroupIsTold: it says which group it waits for, and runs when
// that has come.
func TestAPodWithoutItsPodGroupIsTold(t *testing.T) {
	namespace := cluster.Namespace(t)
	waits := member("forgotten", 0)
	createPods(t, namespace, []*corev1.Pod{waits})
	const want = "there is no PodGroup forgotten in the namespace "
	testbed.Eventually(t, "the Pod to be told why it waits", func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, waits.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == "PodGroupNotFound" && strings.HasPrefix(c.Message, want) {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("its conditions are %v", pod.Status.Conditions), nil
	})
	testbed.Eventually(t, "an event that says so", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=involvedObject.name="+waits.Name, "-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, want), out, err
	})
	cluster.CreateGroup(t, namespace, "forgotten", 1)
	waitPlaced(t, namespace, 1)
}
