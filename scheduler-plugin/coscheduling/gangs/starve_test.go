// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

func TestWhoStarves(t *testing.T) {
	// Gangs are planned in vain one second after the other, in this order, and
	// are asked a minute after the first.
	type waiting struct {
		name     string
		priority int32
		created  int
	}
	tests := map[string]struct {
		gangs []waiting
		after time.Duration
		want  []string
	}{
		"nobody before the time":     {gangs: []waiting{{"a", 0, 1}}, after: 2 * time.Minute},
		"nobody if it is turned off": {gangs: []waiting{{"a", 0, 1}}, after: 0},
		"the older of two":           {gangs: []waiting{{"a", 0, 1}, {"b", 0, 2}}, after: 30 * time.Second, want: []string{"a"}},
		"only at the highest priority that waits": {
			gangs: []waiting{{"a", 0, 1}, {"b", 5, 2}}, after: 30 * time.Second, want: []string{"b"},
		},
		"the younger one, if the older has not waited for long": {
			gangs: []waiting{{"young", 0, 2}, {"old", 0, 1}}, after: 59500 * time.Millisecond, want: []string{"young"},
		},
		"nobody below one of higher priority that has not waited for long": {
			gangs: []waiting{{"low", 0, 2}, {"high", 5, 1}}, after: 59500 * time.Millisecond,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.starvesAfter = tc.after
			start := b.time
			for i, gang := range tc.gangs {
				b.time = start.Add(time.Duration(i) * time.Second)
				group := bornAt(gang.created, makeGroup(gang.name, 1))
				b.SetGroup(group)
				b.add(makePod(gang.name+"-0", inGroup(gang.name), ofPriority(gang.priority)))
				view := b.turn()
				b.fail(view.Key, group.UID, line.Refusal{Message: "no room"}, 0, 0)
			}
			b.time = start.Add(time.Minute)
			var got []string
			for _, gang := range tc.gangs {
				if b.Starves(gangNamed(gang.name)) {
					got = append(got, gang.name)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("starving are %v, want %v", got, tc.want)
			}
		})
	}
}

// TestAGangThatHadItsPlaceHasNotWaitedSinceItsFirstCycle: it lost a member an hour
// after it was placed, and looks for room for the replacement since a second.
func TestAGangThatHadItsPlaceHasNotWaitedSinceItsFirstCycle(t *testing.T) {
	b := newBench()
	b.starvesAfter = time.Minute
	group, first := makeGroup("gang", 1), makePod("first", inGroup("gang"))
	b.SetGroup(group)
	b.add(first)
	b.turn()
	b.assumeAll(gangName, map[types.UID]string{first.UID: "node-0"})
	bound := makePod("first", inGroup("gang"), onNode("node-0"))
	b.SetPod(bound)

	b.time = b.time.Add(time.Hour)
	b.DeletePod(bound)
	second := makePod("second", inGroup("gang"))
	b.add(second)
	b.turn()
	b.fail(gangName, group.UID, line.Refusal{Message: "no room"}, 0, 0)
	b.time = b.time.Add(59 * time.Second)
	if b.Starves(gangName) {
		t.Error("the gang starves before it has waited for a minute")
	}
	b.time = b.time.Add(time.Second)
	if !b.Starves(gangName) {
		t.Error("the gang does not starve when it has waited for a minute")
	}
}

// TestAGangThatHasJustLostAMemberIsNotGivenAway: long ago it was told that there is no room
// for one more than its minimum. Since when it lacks its minimum is not known yet.
func TestAGangThatHasJustLostAMemberIsNotGivenAway(t *testing.T) {
	b := newBench()
	b.SetGroup(bornAt(2, makeGroup("gang", 2)))
	pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang"))}
	b.add(pods...)
	view := b.turn()
	b.Assume(&view, map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"})
	b.fail(gangName, view.Group.UID, line.Refusal{Message: "no room for 1 more members above the minimum"}, 0, 0)
	for _, name := range []string{"a", "b"} {
		b.SetPod(makePod(name, inGroup("gang"), onNode("node-0")))
	}
	b.time = b.time.Add(time.Hour)
	b.DeletePod(makePod("b", inGroup("gang"), onNode("node-0")))
	lost := b.Standings()[gangName]
	if lost.Placed.Total != 1 || lost.Waits {
		t.Error("the gang is taken for one that has waited for long")
	}
}
