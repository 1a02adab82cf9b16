// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/admission"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Applicants are the groups of a dialect that wait to be let in, and those that count as they were let in
// a short while ago. Groups of other schedulers are none of them, nor those that can't be placed as they
// ask. It is false as long as nothing is to be told of groups: another scheduler leads, or not all
// is known that existed before this one.
func (t *Gangs) Applicants(d dialect.Dialect, counts func(key dialect.Key, group types.UID) bool) ([]admission.Group, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.synced {
		return nil, false
	}
	var all []admission.Group
	for key, g := range t.gangs {
		if key.Dialect != d || g.group == nil || g.group.IsHalted() {
			continue
		}
		waits := !g.record.IsLetIn(g.group, g.rivalry.foreign)
		if !waits && !counts(key, g.group.UID) {
			continue
		}
		pods, _, _, ours := g.census()
		if !ours {
			continue
		}
		expects := g.record.StatusOf(g.group, g.rivalry.foreign).Phase == dialect.PhaseInqueue && pods.Exist == 0
		all = append(all, admission.Group{Key: key, UID: g.group.UID, Rank: g.rank(), Waits: waits, Expects: expects,
			Came: g.group.HeldBy(g.placed.Plus(g.waiting)),
			Rest: g.group.Spec.Provision.Resources.Less(g.takesPlaced())})
	}
	return all, true
}

// takesPlaced is what the members take that have a place.
func (g *gang) takesPlaced() provision.Amounts {
	sum := make(provision.Amounts)
	for _, m := range g.members {
		if g.state(m) == memberPlaced {
			sum.Add(provision.OfPod(m.pod))
		}
	}
	return sum
}
