//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// leaseOfVolcano is the Lease of Volcano's scheduler, and leaderOfVolcano the replica that holds it.
var leaseOfVolcano = types.NamespacedName{Namespace: "volcano-system", Name: "volcano"}

const leaderOfVolcano = "vc-scheduler-0"

// leadAsVolcano has Volcano's scheduler hold its Lease.
func leadAsVolcano(ctx context.Context, c *testCluster) error {
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseOfVolcano.Namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.Kube.CoordinationV1().Leases(leaseOfVolcano.Namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseOfVolcano.Name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new(leaderOfVolcano), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{})
	return err
}

// renewAsVolcano has Volcano's scheduler renew its Lease, as the holder of a Lease does every few seconds.
func renewAsVolcano(ctx context.Context, c *testCluster) error {
	patch := fmt.Appendf(nil, `{"spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, err := c.Kube.CoordinationV1().Leases(leaseOfVolcano.Namespace).Patch(ctx, leaseOfVolcano.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// TestWhoLeadsUnderAServedNameIsToldAtTheStart: the scheduler logs the name of the other scheduler, and the metric counts
// the other scheduler as long as it renews its Lease.
func TestWhoLeadsUnderAServedNameIsToldAtTheStart(t *testing.T) {
	cluster := withNative.parallel(t)
	cluster.waitLog(t, `schedulerName="volcano" this="lockstep-scheduler" other="vc-scheduler-0, which holds the Lease volcano-system/volcano"`)
	token := cluster.ReaderOfMetrics(t, cluster.Namespace(t))
	testbed.Eventually(t, "the metric of rivals to count one of the name volcano", func(ctx context.Context) (bool, string, error) {
		n := testbed.Metric(t, "https://"+cluster.address, token, `lockstep_scheduler_rivals{scheduler_name="volcano"}`)
		return n == 1, fmt.Sprint(n), renewAsVolcano(ctx, cluster)
	})
	if n := testbed.Metric(t, "https://"+cluster.address, token, `lockstep_scheduler_rivals{scheduler_name="lockstep-scheduler"}`); n != 0 {
		t.Errorf("the metric of rivals of the name lockstep-scheduler is %d, and there is none", n)
	}
}

// TestWhatIsServedIsToldAtTheStart: the scheduler logs in one line which names and kinds it serves, and the reason for each
// dialect that is off.
func TestWhatIsServedIsToldAtTheStart(t *testing.T) {
	cluster := withNative.parallel(t)
	cluster.waitLog(t, `"What is served" schedulerNames=["lockstep-scheduler","volcano"] podGroupsOf=["scheduling.lockstep.dev","scheduling.k8s.io"] notOf=["scheduling.x-k8s.io","scheduling.volcano.sh"] `+
		`dialects=["scheduling.k8s.io on (Auto): served","scheduling.x-k8s.io off (Auto): its CustomResourceDefinition is not installed"`)
}

// TestWhoBindsAMemberThatWaitsIsTold: a member waits for another member, and another program binds it.
func TestWhoBindsAMemberThatWaitsIsTold(t *testing.T) {
	t.Parallel()
	// A scheduler that led before may have bound Pods that the present one has seen in this time after its start.
	const succession = 90 * time.Second
	testbed.EventuallyWithin(t, 3*time.Minute, "the scheduler to lead for a while", func(context.Context) (bool, string, error) {
		return time.Since(cluster.leading) > succession, "", nil
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
	const node = "sim-0"
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "gang-0"}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := cluster.Kube.CoreV1().Pods(namespace).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.waitLog(t, fmt.Sprintf(`schedulerName="lockstep-scheduler" this="lockstep-scheduler" other="somebody who has bound the Pod %s/gang-0 to %s"`, namespace, node))
}
