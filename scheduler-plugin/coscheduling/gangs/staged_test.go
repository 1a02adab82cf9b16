// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// staged has a Pod say that its gang is.
func staged(w *schedulertesting.PodWrapper) {
	w.Annotation("scheduling.lockstep.dev/staged", "true")
}

// tick is so much later, and says whether the gang "gang" is next.
func (b *bench) tick(d time.Duration) bool {
	b.time = b.time.Add(d)
	b.Next()
	return b.isNext(gangName)
}

// TestAGangComesInStages: an initializer runs alone, and then the nodes together, though the group counts all.
func TestAGangComesInStages(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 4))
	initializer := makePod("init", inGroup("gang"), staged)
	b.add(initializer)
	if b.tick(time.Second) {
		t.Error("it has its turn before it is known who comes with the first one")
	}
	if _, _, again := b.Next(); !again.Equal(b.time.Add(time.Second)) {
		t.Errorf("it is looked at again at %s, want in a second", again)
	}
	if !b.tick(time.Second) {
		t.Fatal("it has no turn, though nobody else has come")
	}
	b.turn()
	if !b.assumeAll(gangName, map[types.UID]string{initializer.UID: "node"}) {
		t.Fatal("the first one is not enough")
	}
	b.add(makePod("init", inGroup("gang"), staged, onNode("node"), inPhase(corev1.PodSucceeded)))
	b.add(makePod("node-0", inGroup("gang"), staged))
	if b.tick(time.Second) {
		t.Error("a node has its turn before it is known who comes with it")
	}
	b.add(makePod("node-1", inGroup("gang"), staged), makePod("node-2", inGroup("gang"), staged))
	if b.tick(time.Second) {
		t.Error("the nodes have their turn before it is known who comes with them")
	}
	if !b.tick(time.Second) {
		t.Fatal("the nodes have no turn, and all are there")
	}
	view := b.turn()
	if view.Group.Spec.Minimum.Members != 4 {
		t.Errorf("%d are placed together, want all 4", view.Group.Spec.Minimum.Members)
	}
	if view.Broken() {
		t.Error("it goes before others, as a gang does that has lost members")
	}
	if b.assumeAll(gangName, map[types.UID]string{"uid-node-0": "node"}) {
		t.Error("a part of the stage is enough")
	}
}

// TestAGangThatIsNotStagedWaitsForAll, however long nobody comes.
func TestAGangThatIsNotStagedWaitsForAll(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	b.add(makePod("init", inGroup("gang")))
	if b.tick(time.Hour) {
		t.Error("it has its turn with one of two")
	}
}

// TestAStageIsNoLargerThanTheMinimum: more members are placed as they fit. What the group itself says counts as
// what its Pods say, and nobody is waited for who was there before.
func TestAStageIsNoLargerThanTheMinimum(t *testing.T) {
	b := newBlindBench()
	group := makeGroup("gang", 2)
	group.Annotations = map[string]string{"scheduling.lockstep.dev/staged": "true"}
	b.SetGroup(group)
	b.time = b.time.Add(time.Hour)
	for _, name := range []string{"a", "b", "c"} {
		b.add(makePod(name, inGroup("gang"), func(w *schedulertesting.PodWrapper) {
			w.CreationTimestamp(bornAt(0, makeGroup("", 1)).CreationTimestamp)
		}))
	}
	b.SetSynced()
	if !b.isNext(gangName) {
		t.Fatal("it has no turn")
	}
	if view := b.turn(); view.Group.Spec.Minimum.Members != 2 {
		t.Errorf("%d are placed together, want 2", view.Group.Spec.Minimum.Members)
	}
	group = group.DeepCopy()
	group.ResourceVersion = "8"
	b.SetGroup(group)
	if got := b.gangs[gangName].group; got.Spec.Minimum.Members != 2 || got.ResourceVersion != "8" {
		t.Errorf("a write of its status makes it %+v", got)
	}
}
