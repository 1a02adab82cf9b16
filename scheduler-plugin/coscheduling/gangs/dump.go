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

// Dump is all that is known at one time, for tests that hold it against the truth.
type Dump struct {
	// Synced says that all that existed at the start has been seen, and that the scheduler
	// leads.
	Synced bool
	Gangs  map[dialect.Key]Entry
}

// Entry is what is known of a gang.
type Entry struct {
	// Group is nil while there is no PodGroup of the name.
	Group *dialect.Group
	// Members are the Pods that name the group, strangers among them.
	Members                map[types.UID]Member
	Waiting, Placed, Bound podgroup.Tally
	// Complete says that the minimum could hold if all that waits were placed.
	Complete bool
	// Ready says that the gang is to have a cycle, at once or later, and Failures how many in
	// a row have found no place.
	Ready    bool
	Failures int
}

// Member is what is known of a Pod that names a group.
type Member struct {
	Pod *corev1.Pod
	// Assumed is the node of a member whose binding is not seen yet, else empty.
	Assumed string
	// Leaving says that it is being preempted.
	Leaving bool
}

// DumpOf copies all that some Gangs know. It fails if a gang's counts are not what its
// members add up to.
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

// miscounted says what of a gang's counts is not what its members add up to, empty for
// nothing.
func miscounted(g *gang) string {
	recount := newGang(g.key, g.rules, g.groupless)
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

// includes says whether all that is counted of one is counted as often of another. A role of
// which there is nobody may be left out.
func includes(all, some map[string]int32) bool {
	for role, n := range some {
		if all[role] != n {
			return false
		}
	}
	return true
}
