//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rivals tests that lockstep-scheduler notices other schedulers of a name that it serves, with
// the rights that the manifests give it.
package rivals

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster, scheduler and the address of its metrics are what the tests share. TestMain sets them once, before any test.
var (
	cluster   *testbed.Cluster
	scheduler *localenv.Process
	address   string
)

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 1, NodeCPU: "8", NodePods: 100, With: "none"},
		func(ctx context.Context, c *testbed.Cluster) error {
			cluster = c
			if err := lead(ctx, "volcano-system", "volcano"); err != nil {
				return err
			}
			var err error
			if address, err = testbed.FreeAddress(); err != nil {
				return err
			}
			scheduler, err = c.StartSchedulerWith(ctx, localenv.SchedulerOptions{AlsoServes: []string{"volcano"}, Address: address})
			return err
		}))
}

// lead has somebody lead by a Lease.
func lead(ctx context.Context, namespace, name string) error {
	if _, err := cluster.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := cluster.Kube.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("vc-scheduler-0"), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{})
	return err
}

// TestWhoLeadsUnderAServedNameIsToldAtTheStart, with the names of both, and by the metric.
func TestWhoLeadsUnderAServedNameIsToldAtTheStart(t *testing.T) {
	waitLog(t, `schedulerName="volcano" this="lockstep-scheduler" other="vc-scheduler-0, which holds the Lease volcano-system/volcano"`)
	token := cluster.ReaderOfMetrics(t, cluster.Namespace(t))
	if n := testbed.Metric(t, "https://"+address, token, `lockstep_scheduler_rivals{scheduler_name="volcano"}`); n != 1 {
		t.Errorf("the metric of rivals of the name volcano is %d, want 1", n)
	}
	if n := testbed.Metric(t, "https://"+address, token, `lockstep_scheduler_rivals{scheduler_name="lockstep-scheduler"}`); n != 0 {
		t.Errorf("the metric of rivals of the name lockstep-scheduler is %d, and there is none", n)
	}
}

// TestWhatIsServedIsToldAtTheStart, and of each dialect why, in one line.
func TestWhatIsServedIsToldAtTheStart(t *testing.T) {
	waitLog(t, `"What is served" schedulerNames=["lockstep-scheduler","volcano"] podGroupsOf=["scheduling.lockstep.dev"]`)
	waitLog(t, ` dialects=["scheduling.k8s.io off (Auto): `)
}

// TestWhoBindsAMemberThatWaitsIsTold: it waits for another member, and somebody binds it.
func TestWhoBindsAMemberThatWaitsIsTold(t *testing.T) {
	// What is older than a scheduler's lead may have been bound by the one before it.
	testbed.EventuallyWithin(t, 3*time.Minute, "the scheduler to lead for a while", func(context.Context) (bool, string, error) {
		return time.Since(scheduler.Started) > 110*time.Second, "", nil
	})
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "gang", 2)
	cluster.CreatePod(t, namespace, testbed.MakePod("gang-0", testbed.InGroup("gang")))
	testbed.Eventually(t, "the gang to lack a member", func(ctx context.Context) (bool, string, error) {
		group, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Get(ctx, "gang", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return len(group.Status.Conditions) > 0, fmt.Sprint(group.Status), nil
	})
	nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "gang-0"}, Target: corev1.ObjectReference{Kind: "Node", Name: nodes.Items[0].Name}}
	if err := cluster.Kube.CoreV1().Pods(namespace).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitLog(t, fmt.Sprintf(`schedulerName="lockstep-scheduler" this="lockstep-scheduler" other="somebody who has bound the Pod %s/gang-0 to %s"`, namespace, nodes.Items[0].Name))
}

// waitLog waits until the scheduler has told of a rival.
func waitLog(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	if err := scheduler.WaitLog(ctx, text); err != nil {
		t.Fatal(err)
	}
}
