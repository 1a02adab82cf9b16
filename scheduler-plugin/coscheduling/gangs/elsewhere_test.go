// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAMemberThatSomebodyElseHasBoundIsNoticed: it waited here, and this scheduler never had a place
// for it.
func TestAMemberThatSomebodyElseHasBoundIsNoticed(t *testing.T) {
	bound := func(pod *corev1.Pod) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Spec.NodeName = "node"
		return pod
	}
	pod := makePod("gang-0", inGroup("gang"))
	t.Run("it waits", func(t *testing.T) {
		b := newBench()
		b.SetPod(pod)
		came := b.time
		b.time = b.time.Add(time.Minute)
		b.SetPod(bound(pod))
		b.SetPod(bound(pod))
		if !slices.Equal(b.drained().elsewhere, []string{"gang-0"}) || !b.drained().known.Equal(came) {
			t.Errorf("%v are noticed, known since %v, want since %v", b.drained().elsewhere, b.drained().known, came)
		}
	})
	t.Run("another scheduler leads", func(t *testing.T) {
		b := newBlindBench()
		b.SetPod(pod)
		b.SetPod(bound(pod))
		if len(b.drained().elsewhere) > 0 {
			t.Errorf("%v are noticed", b.drained().elsewhere)
		}
	})
	t.Run("it came with its node", func(t *testing.T) {
		b := newBench()
		b.SetPod(bound(pod))
		if len(b.drained().elsewhere) > 0 {
			t.Errorf("%v are noticed", b.drained().elsewhere)
		}
	})
	t.Run("this scheduler was told that its binding had failed", func(t *testing.T) {
		b := newBench()
		b.SetGroup(makeGroup("gang", 1))
		b.SetPod(pod)
		if !b.assumeAll(gangName, map[types.UID]string{pod.UID: "node"}) {
			t.Fatal("the gang has no place")
		}
		b.Unassume(FailedBinding{Pod: pod, Message: "the reply was lost"})
		b.SetPod(bound(pod))
		if len(b.drained().elsewhere) > 0 {
			t.Errorf("%v are noticed", b.drained().elsewhere)
		}
	})
	t.Run("its gates have not gone", func(t *testing.T) {
		b := newBench()
		gated := pod.DeepCopy()
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "queue"}}
		b.SetPod(gated)
		b.SetPod(bound(pod))
		if len(b.drained().elsewhere) > 0 {
			t.Errorf("%v are noticed", b.drained().elsewhere)
		}
	})
}
