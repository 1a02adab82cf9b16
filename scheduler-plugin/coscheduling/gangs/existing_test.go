// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAMemberIsNotPlacedBesideOneThatIsGone: of a gang of two one is placed, or has succeeded, and is gone. The gang has heard first of
// another one that came for it, as happens after a watch was broken.
func TestAMemberIsNotPlacedBesideOneThatIsGone(t *testing.T) {
	for name, phase := range map[string]corev1.PodPhase{"it ran": corev1.PodRunning, "it had succeeded": corev1.PodSucceeded} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.SetGroup(makeGroup("gang", 2))
			lost, waits := makePod("a", inGroup("gang"), onNode("n"), inPhase(phase)), makePod("b", inGroup("gang"))
			b.add(lost, waits)
			view := b.cycle()
			b.gone[lost.UID] = true
			if b.Assume(&view, map[types.UID]string{waits.UID: "n"}) {
				t.Error("it is placed, and it is alone")
			}
			b.DeletePod(lost)
			if b.isNext(gangName) {
				t.Error("the gang has a cycle, and has one member")
			}
			b.add(makePod("c", inGroup("gang")))
			if !b.isNext(gangName) {
				t.Error("the gang has no cycle, and has two members")
			}
			if what := miscounted(b.gangs[gangName]); what != "" {
				t.Errorf("the gang %s", what)
			}
		})
	}
}

// TestAGangIsNotPlacedWithoutAMemberThatIsGone: a member that waited is deleted in the cycle of its gang, which has not heard of that.
func TestAGangIsNotPlacedWithoutAMemberThatIsGone(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang"))}
	b.add(pods...)
	view := b.cycle()
	b.gone[pods[1].UID] = true
	if b.Assume(&view, map[types.UID]string{pods[0].UID: "n", pods[1].UID: "n"}) {
		t.Error("a member is placed alone")
	}
}

// TestAGangThatLosesTwoAtOnceGoesAsAWhole: it can spare one, and preemption takes one before the gang has heard that another one is gone.
func TestAGangThatLosesTwoAtOnceGoesAsAWhole(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	a, taken, gone := makePod("a", inGroup("gang"), onNode("n")), makePod("b", inGroup("gang"), onNode("n")), makePod("c", inGroup("gang"), onNode("n"))
	b.add(a, taken, gone)
	b.gone[gone.UID] = true
	b.SetLeaving([]*corev1.Pod{taken}, true)
	if want := []string{"a"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
	}
}
