//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestWhatIsServedIsToldAtTheStart: the scheduler logs in one line which names and kinds it serves, and the reason for each
// PodGroup API that is off.
func TestWhatIsServedIsToldAtTheStart(t *testing.T) {
	cluster := withNative.parallel(t)
	cluster.waitLog(t, `"What is served" schedulerNames=["lockstep-scheduler","volcano"] podGroupsOf=["scheduling.lockstep.dev","scheduling.k8s.io","scheduling.x-k8s.io"] notOf=["scheduling.volcano.sh"] `+
		`podGroupAPIs=["scheduling.k8s.io on (Auto): served","scheduling.x-k8s.io on (Auto): `)
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
	cluster.waitLog(t, fmt.Sprintf(`schedulerName="lockstep-scheduler" this="lockstep-scheduler" other="whoever bound the Pod" pod="%s/gang-0" node="%s"`, namespace, node))
}
