//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestALeaderHasRoomKeptForItsWorkers: with the startupPolicy LeaderReady, LeaderWorkerSet makes the workers when the leader
// is ready, and the group asks for the leader alone. An ordinary Pod of the same priority does not get the room that the
// scheduler keeps for the workers.
func TestALeaderHasRoomKeptForItsWorkers(t *testing.T) {
	cluster := reserving.parallel(t)
	room := cluster.Room(t, 4, 4)
	const size = 5
	namespace, others := cluster.Namespace(t), cluster.Namespace(t)
	pod := func(name string, of ...metav1.OwnerReference) *corev1.Pod {
		made, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), testbed.MakePod(name, func(pod *corev1.Pod) {
			pod.Labels = map[string]string{"leaderworkerset.sigs.k8s.io/name": "serve"}
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "serve-0-5d2f", "leaderworkerset.sigs.k8s.io/size": fmt.Sprint(size)}
			pod.OwnerReferences = of
		}, room.Confine), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	leader := pod("serve-0")
	groups := cluster.volcanoGroups(namespace)
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(1), "queue": "default", "minResources": map[string]any{"cpu": fmt.Sprint(size)}}}}
	group.SetGroupVersionKind(dialect.Volcano.Kind())
	group.SetName("serve-0-5d2f")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: leader.Name, UID: leader.UID, Controller: new(true), BlockOwnerDeletion: new(true)}
	group.SetOwnerReferences([]metav1.OwnerReference{owner})
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitPlaced(t, namespace, 1)
	cluster.waitsForRoom(t, room, others, "large", 4)
	cluster.CreatePod(t, others, testbed.MakePod("small", testbed.WithCores(3), room.Confine))
	cluster.WaitPlaced(t, others, 1)
	testbed.Consistently(t, "the room to be kept", 10*time.Second, func(ctx context.Context) (bool, string, error) {
		names, err := cluster.Placed(ctx, others)
		return slices.Equal(names, []string{"small"}), fmt.Sprint(names), err
	})
	for i := 1; i < size; i++ {
		pod(fmt.Sprintf("serve-0-%d", i), owner)
	}
	cluster.WaitPlaced(t, namespace, size)
	if names, err := cluster.Placed(t.Context(), others); err != nil || !slices.Equal(names, []string{"small"}) {
		t.Errorf("%v of others are placed, want the small one alone (%v)", names, err)
	}
	cluster.DeletePod(t, others, "small")
}
