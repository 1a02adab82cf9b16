// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Dump is all that Gangs knows at one time, for tests that compare it with the truth.
type Dump struct {
	// Synced reports that the initial lists are complete, and that the scheduler leads.
	Synced bool
	Gangs  map[dialect.Key]Entry
}

// Entry is what is known of a gang.
type Entry struct {
	// Group is nil while no PodGroup with the name exists.
	Group *dialect.Group
	// Members are the Pods that name the group, including strangers.
	Members                map[types.UID]Member
	Waiting, Placed, Bound podgroup.Tally
	// Complete reports that the minimum could hold if all waiting members were placed.
	Complete bool
	// Ready reports that the gang will have a cycle, now or later. Failures is how many cycles in a row have found no
	// place for it.
	Ready    bool
	Failures int
}

// Member is what is known of a Pod that names a group.
type Member struct {
	Pod *corev1.Pod
	// Assumed is the node of a member that was placed and is not seen bound yet; otherwise "".
	Assumed string
	// Leaving reports that the member is being preempted.
	Leaving bool
}

// DumpOf copies all that a Gangs knows. It returns an error if a gang's counts differ from the sum of its members.
func DumpOf(t *Gangs) (Dump, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	dump := Dump{Synced: t.synced, Gangs: make(map[dialect.Key]Entry, len(t.gangs))}
	for key, g := range t.gangs {
		e := Entry{Group: g.group, Members: make(map[types.UID]Member, len(g.members)), Complete: g.complete(),
			Waiting: g.waiting.Plus(podgroup.Tally{}), Placed: g.placed.Plus(podgroup.Tally{}), Bound: g.bound.Plus(podgroup.Tally{}),
			Ready: t.queue.IsReady(key), Failures: t.queue.Failures(key)}
		for uid, m := range g.members {
			e.Members[uid] = Member{Pod: m.pod, Assumed: m.assumed, Leaving: m.leaving}
		}
		dump.Gangs[key] = e
		if what := miscounted(g); what != "" {
			return dump, fmt.Errorf("%s %s", key.Name, what)
		}
	}
	return dump, nil
}

// miscounted returns the name of a gang's count that differs from the sum of its members, "" if all counts are right.
func miscounted(g *gang) string {
	recount := newGang(g.key, g.rules, make(map[dialect.Key]*gang), g.groupless)
	for _, m := range g.members {
		recount.count(m, 1)
	}
	for _, tally := range []struct{ got, want podgroup.Tally }{
		{g.waiting, recount.waiting}, {g.placed, recount.placed}, {g.bound, recount.bound},
	} {
		if tally.got.Total != tally.want.Total || !includes(tally.got.Roles, tally.want.Roles) || !includes(tally.want.Roles, tally.got.Roles) {
			return fmt.Sprintf("counts %+v, its members are %+v", tally.got, tally.want)
		}
	}
	if (g.withPlaced[g.key] == g) != (g.placed.Total > 0) {
		return fmt.Sprintf("has %d placed members, and counts as a gang with placed members: %t", g.placed.Total, g.withPlaced[g.key] == g)
	}
	if g.strangers != recount.strangers || !maps.Equal(g.priorities, recount.priorities) || !maps.Equal(g.ended, recount.ended) {
		return fmt.Sprintf("counts %d strangers and the priorities %v and %v, there are %d, %v and %v",
			g.strangers, g.priorities, g.ended, recount.strangers, recount.priorities, recount.ended)
	}
	if g.takes != nil {
		if taken := takesPlaced(g); !g.takes.Equal(taken) {
			return fmt.Sprintf("counts that its members take %s, and they take %s", g.takes, taken)
		}
	}
	return ""
}

// includes reports whether counts has the same count as part for each role in part. A role that counts lacks has the
// count 0.
func includes(counts, part map[string]int32) bool {
	for role, n := range part {
		if counts[role] != n {
			return false
		}
	}
	return true
}
