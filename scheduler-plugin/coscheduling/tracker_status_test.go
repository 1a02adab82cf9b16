// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestWhatWasLookedAtDoesNotChange: it is told of a gang without the lock of the tracker.
func TestWhatWasLookedAtDoesNotChange(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 2))
	b.add(makePod("a", inGroup("gang"), inRole("worker")))
	before, _ := b.Look(gangName)
	b.add(makePod("b", inGroup("gang"), inRole("worker")), makePod("c", inGroup("gang"), inRole("worker"), onNode("node-0")))
	if before.Waiting.Roles["worker"] != 1 || before.Placed.Roles["worker"] != 0 || len(before.Pods) != 1 {
		t.Errorf("what was looked at shows members that have come since: %v wait, %v are placed, of %d Pods",
			before.Waiting, before.Placed, len(before.Pods))
	}
}

// TestWhoLooksSeesWhatWaits: members and strangers that would wait, and nobody else.
func TestWhoLooksSeesWhatWaits(t *testing.T) {
	b := newBench()
	b.setGroup(groupOf("this", "gang", 1))
	own, stray := makePod("own", inGroup("gang"), of("this")), makePod("stray", inGroup("gang"))
	placed, strayPlaced := makePod("placed", inGroup("gang"), of("this"), onNode("node-0")), makePod("stray-placed", inGroup("gang"), onNode("node-0"))
	b.add(own, stray, placed, strayPlaced)
	gang, _ := b.Look(gangName)
	got := map[string]bool{}
	for _, p := range gang.Pods {
		got[p.Pod.Name] = p.Stranger
	}
	if diff := cmp.Diff(map[string]bool{"own": false, "stray": true}, got); diff != "" {
		t.Errorf("Pods that wait, and whether they are strangers (-want, +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"own": true, "stray": true, "placed": false, "stray-placed": false, "nobody": false} {
		if _, pod, ok := b.LookAt(gangName, makePod(name).UID); ok != want || ok && pod.Stranger != got[name] {
			t.Errorf("%s waits: %t, as a stranger: %t", name, ok, pod.Stranger)
		}
	}
}

// TestGangsThatWaitAreCountedByReason: by that of their condition, or by why room is kept.
func TestGangsThatWaitAreCountedByReason(t *testing.T) {
	b := newBench()
	for name, least := range map[string]int32{"incomplete": 2, "fresh": 1, "refused": 1, "preempts": 1, "starves": 1, "unready": 1} {
		group := makeGroup(name, least)
		b.setGroup(group)
		b.add(makePod(name+"-0", inGroup(name)))
		if name != "incomplete" && name != "fresh" {
			b.fail(gangNamed(name), group.UID, line.Refusal{Message: "no room", Unready: name == "unready"}, time.Minute, time.Minute)
		}
	}
	b.setHeld(gangNamed("preempts"), heldForPreemption)
	b.setHeld(gangNamed("starves"), heldForStarving)
	want := map[string]int{"NotEnoughTasks": 2, "NotEnoughResources": 1, news.Preempting: 1, news.Starving: 1}
	if diff := cmp.Diff(want, b.waitingGangs()); diff != "" {
		t.Errorf("gangs that wait (-want, +got):\n%s", diff)
	}
}
