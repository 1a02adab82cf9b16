// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestEachWayInWhichAMemberEndsCountsOrNot holds the table of all ways against a member: it counts towards the minimum
// from then on if it has succeeded by itself.
func TestEachWayInWhichAMemberEndsCountsOrNot(t *testing.T) {
	serves := func(string) bool { return true }
	for _, way := range podways.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			m := &member{}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main"}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
					{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				}},
			}
			m.show(pod)
			ended := pod.DeepCopy()
			way.End(podways.Ending{Pod: ended, At: metav1.Unix(1000, 0)})
			m.show(ended)
			want := memberOut
			if way.Kubeflow.Never == podways.Succeeds && way.Cause == podend.CauseProgram {
				want = memberPlaced
			}
			if got := m.state(serves); got != want || m.bound() != (want == memberPlaced) {
				t.Errorf("the member counts as %d, bound %t, want %d", got, m.bound(), want)
			}
		})
	}
	t.Run("exits with 0, is deleted, and lingers by a finalizer", func(t *testing.T) {
		m := &member{}
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
		m.show(pod)
		pod = pod.DeepCopy()
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{}, []string{"example.com/keep"}
		m.show(pod)
		if got := m.state(serves); got != memberPlaced {
			t.Errorf("the member counts as %d, want that it is placed", got)
		}
	})
}

// TestTheRestIsPlannedAgainWhenAMemberHasSucceeded: a topology ties the rest to the domain of the members that run. The
// scheduler's cache may have told of the room before the gang heard that its member runs no more.
func TestTheRestIsPlannedAgainWhenAMemberHasSucceeded(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	runs := makePod("runs", inGroup("gang"), onNode("node"))
	b.add(runs, makePod("waits", inGroup("gang")))
	if view := b.cycle(); len(view.Nodes) != 1 {
		t.Fatalf("the gang runs on %v, want one node", view.Nodes)
	}
	b.fail(gangName, "uid-of-group-gang", queue.Refusal{Need: queue.Need{Members: 1}}, time.Second, time.Second)
	b.time = b.time.Add(2 * time.Second)
	if b.isNext(gangName) {
		t.Fatal("a gang that was refused is planned again though nothing has happened")
	}
	b.add(makePod("runs", inGroup("gang"), onNode("node"), inPhase(corev1.PodSucceeded)))
	if view := b.cycle(); view.Key != gangName || len(view.Nodes) > 0 {
		t.Errorf("the gang that is planned is %q, on %v, want the gang, on no node", view.Key.Name, view.Nodes)
	}
}
