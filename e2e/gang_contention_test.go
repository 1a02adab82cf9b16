//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestTwentyGangsContendForTheRoomOfTen: 20 gangs of 100 Pods arrive interleaved
// on nodes that hold 10 of them. Ten are placed, none in part; when those end,
// the others run.
func TestTwentyGangsContendForTheRoomOfTen(t *testing.T) {
	const size, fit = 100, nodes * coresOfNode / 100
	namespace := cluster.Namespace(t)
	var pods []*corev1.Pod
	for g := range 2 * fit {
		cluster.CreateGroup(t, namespace, fmt.Sprintf("gang%02d", g), size)
	}
	for i := range size {
		for g := range 2 * fit {
			pods = append(pods, member(fmt.Sprintf("gang%02d", g), i))
		}
	}
	createPods(t, namespace, pods)

	first := waitPlaced(t, namespace, fit*size)
	tenWhole := func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, namespace)
		return len(placed) == fit && len(placed.whole(size)) == fit, placed.String(), err
	}
	testbed.Consistently(t, "that ten gangs are placed, and none in part", 3*time.Second, tenWhole)
	for name := range first {
		if len(first[name]) != size {
			t.Errorf("%d of %d members of %s are placed", len(first[name]), size, name)
		}
	}
	for g := range 2 * fit {
		if name := fmt.Sprintf("gang%02d", g); first[name] == nil {
			waitUnschedulable(t, namespace, name, schedulingv1alpha1.ReasonNotEnoughResources, "short of")
			break
		}
	}

	for _, placed := range first {
		endPods(t, namespace, placed)
	}
	waitPlaced(t, namespace, 2*fit*size)
}

// TestIncompleteGangHoldsNothing: members that wait for others leave the nodes
// to those who can use them.
func TestIncompleteGangHoldsNothing(t *testing.T) {
	const room = nodes * coresOfNode
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "incomplete", room)
	createPods(t, namespace, members("incomplete", room-1))
	waitUnschedulable(t, namespace, "incomplete", schedulingv1alpha1.ReasonNotEnoughTasks,
		fmt.Sprintf("%d of at least %d members exist", room-1, room))

	cluster.CreateGroup(t, namespace, "other", room)
	createPods(t, namespace, members("other", room))
	placed := waitPlaced(t, namespace, room)
	if len(placed["other"]) != room {
		t.Errorf("placed %v, want all of the complete gang", placed)
	}
}

// TestGangThatIsReplacedInPart: a member that is lost is placed again beside the
// ones that stayed, which count towards the minimum.
func TestGangThatIsReplacedInPart(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreateGroup(t, namespace, "gang", 4)
	createPods(t, namespace, members("gang", 4))
	placed := waitPlaced(t, namespace, 4)
	lost := placed["gang"][0]
	deletePods(t, namespace, []*corev1.Pod{lost})
	createPods(t, namespace, []*corev1.Pod{member("gang", 4)})
	testbed.Eventually(t, "the replacement to be placed", func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, namespace)
		stayed := slices.ContainsFunc(placed["gang"], func(pod *corev1.Pod) bool { return pod.UID == lost.UID })
		return len(placed["gang"]) == 4 && !stayed, placed.String(), err
	})
}
