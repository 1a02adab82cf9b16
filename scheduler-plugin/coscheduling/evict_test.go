// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMembersThatArePreemptedDoNotCount: from the moment that a gang is preempted
// its victims don't help a sibling that waits over the minimum. They go one by
// one, and the sibling would be all that is left.
func TestMembersThatArePreemptedDoNotCount(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("low", 2))
	victims := []*corev1.Pod{makePod("low-0", inGroup("low"), onNode("node-0")), makePod("low-1", inGroup("low"), onNode("node-0"))}
	sibling := makePod("low-2", inGroup("low"))
	b.add(append(victims, sibling)...)
	if reason, ok := b.gate(sibling); !ok {
		t.Fatalf("a member above the minimum is held back: %s", reason)
	}
	b.setLeaving(victims, true)
	if reason, ok := b.gate(sibling); ok {
		t.Error("a member is let through whose gang is being preempted")
	} else if want := "waiting for members of PodGroup ns/low: 1 of at least 2 members exist"; reason != want {
		t.Errorf("it waits because it is %q, want %q", reason, want)
	}
	b.setLeaving(victims, false)
	if reason, ok := b.gate(sibling); !ok {
		t.Errorf("a member is held back after the preemption has failed: %s", reason)
	}
}
