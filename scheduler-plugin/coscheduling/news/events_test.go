// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestAnEventTellsOfConditionsInTheWordsOfTheDialect.
func TestAnEventTellsOfConditionsInTheWordsOfTheDialect(t *testing.T) {
	of := func(d dialect.Dialect) Gang {
		return gangOf(func(g *Gang) {
			g.Key.Dialect, g.Group.Asked, g.Census.Exist = d, 3, 4
			g.Placed = podgroup.Tally{Total: 1}
		})
	}
	for name, tc := range map[string]struct {
		of     dialect.Dialect
		reason string
		want   Event
	}{
		"Lockstep's is placed":     {dialect.Own, "Scheduled", Event{"Normal", "Scheduled", "said before"}},
		"Lockstep's finds no room": {dialect.Own, "NotEnoughResources", Event{"Warning", "NotEnoughResources", "said before"}},
		"Volcano's is placed":      {dialect.Volcano, "Scheduled", Event{"Normal", "Scheduled", "pod group is ready"}},
		"Volcano's finds no room":  {dialect.Volcano, "NotEnoughResources", Event{"Warning", "Unschedulable", "2/4 tasks in gang unschedulable: said before"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := of(tc.of)
			if diff := cmp.Diff(tc.want, g.EventOf(said(tc.reason))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestAGroupIsWarnedOnce, and that of another scheduler only of what concerns all of them.
func TestAGroupIsWarnedOnce(t *testing.T) {
	warned := func(change ...func(*Gang)) int {
		g := gangOf(append([]func(*Gang){func(g *Gang) {
			g.Group.Warnings = []dialect.Warning{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b", Always: true}}
		}}, change...)...)
		return len(g.Warnings())
	}
	if n := warned(); n != 2 {
		t.Errorf("there are %d warnings, want 2", n)
	}
	if n := warned(func(g *Gang) { g.Record.Warned([]Warning{{Reason: "A"}}) }); n != 1 {
		t.Errorf("there are %d warnings after one was told, want 1", n)
	}
	if n := warned(func(g *Gang) { g.Theirs = true }); n != 1 {
		t.Errorf("there are %d warnings to the group of another scheduler, want 1", n)
	}
	if n := warned(groupless); n != 0 {
		t.Errorf("there are %d warnings to no group", n)
	}
}

// TestAPodThatNamesSeveralGroupsIsToldOnce, as soon as its group is there.
func TestAPodThatNamesSeveralGroupsIsToldOnce(t *testing.T) {
	pod := waitingPod()
	pod.Ignored = []dialect.Key{{Dialect: dialect.Volcano, Namespace: "ns", Name: "b"}}
	g := gangOf(func(g *Gang) { g.Pods = []Pod{pod, waitingPod()} })
	warnings := g.Warnings()
	want := []Warning{{Pod: pod.Pod, Reason: "SeveralPodGroups",
		Message: "the Pod names several PodGroups: it is a member of gang and of no other, so b of scheduling.volcano.sh means nothing"}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	g.Record.Warned(warnings)
	if len(g.Warnings()) > 0 {
		t.Error("the Pod is told again")
	}
	g = gangOf(groupless, func(g *Gang) { g.Pods = []Pod{pod} })
	if len(g.Warnings()) > 0 {
		t.Error("the Pod is told before there is a group")
	}
}
