// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestTurnsThatTakeTooLongHaveATenthOfTheTime, however many gangs of a namespace make them,
// and be they the first cycles of new gangs. A gang of another namespace has its cycle.
func TestTurnsThatTakeTooLongHaveATenthOfTheTime(t *testing.T) {
	b := newBench()
	for _, name := range []string{"a", "b", "c"} {
		b.SetGroup(makeGroup(name, 1))
		b.add(makePod(name+"-0", inGroup(name)))
	}
	begun, cycles, made := b.time, 0, 0
	const took, share = 2 * time.Second, 10
	for b.time.Sub(begun) < 10*time.Minute {
		b.somethingHappens()
		made++
		fresh := fmt.Sprint("fresh-", made) // Its name comes after those that wait.
		b.SetGroup(makeGroup(fresh, 1))
		b.add(makePod(fresh+"-0", inGroup(fresh)))
		for view := b.cycle(); view.Group != nil; view = b.cycle() {
			cycles++
			b.time = b.time.Add(took)
			b.fail(view.Key, view.Group.UID, queue.Refusal{Message: "given up", Took: took, Overdue: took > 0}, time.Second, 10*time.Second)
		}
		b.time = b.time.Add(time.Second)
	}
	if most := int(10*time.Minute/took/share) + 3; cycles > most || cycles < most/2 {
		t.Errorf("%d cycles of 2 s in 10 minutes, want some %d", cycles, most)
	}
	group, member := makeGroup("a", 1), makePod("a-0", inGroup("a"))
	group.Namespace, member.Namespace = "elsewhere", "elsewhere"
	b.SetGroup(group)
	b.add(member)
	if !b.isNext(dialect.Key{Namespace: "elsewhere", Name: "a"}) {
		t.Error("a gang of another namespace has no cycle")
	}
}
