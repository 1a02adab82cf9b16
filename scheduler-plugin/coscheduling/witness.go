// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// labelBlind are the Filter plugins whose verdict does not depend on the labels
// of the Pod, nor on which Pods are on the nodes but for what they take.
var labelBlind = sets.New(names.NodeResourcesFit, names.NodeAffinity, names.TaintToleration,
	names.NodeUnschedulable, names.NodeName, names.NodePorts)

// witnesses spare gangs a plan that can't succeed: if a gang just like it has
// found no place, and nothing has happened since that may help, neither will
// this one. On a full cluster many equal gangs wait, and each event wakes them
// all; so the first is planned, and the others learn from it.
//
// Invariant: the witness has failed. It is believed only as long as it still
// waits and no event has woken it: an event that may help wakes the witness no
// later than the others. It is used on the scheduling goroutine only.
type witnesses map[string]witness

// mostWitnesses bounds how many are remembered. Each has the size of a class's key, some
// kilobytes.
const mostWitnesses = 1000

// witness is a gang that found no place.
type witness struct {
	gang types.NamespacedName
	uid  types.UID
	why  shortfall
}

// fingerprint is equal for gangs that find a place or don't together, empty for
// a gang that is not like any other: with members placed, of several kinds, or with
// claims of their own.
func (v *gangView) fingerprint() string {
	if v.placed.Total > 0 || len(v.waiting) == 0 || ownsClaims(v.waiting[0]) {
		return ""
	}
	for _, key := range v.classKeys[1:] {
		if key != v.classKeys[0] {
			return ""
		}
	}
	spec := &v.group.Spec
	return fmt.Sprintf("%d %t %d %d %v %v %s", v.rank.Priority, v.mayPreempt, len(v.waiting), spec.MinMember, spec.MinRoleMember,
		spec.Topology, v.classKeys[0])
}

// recall is what a witness says of a gang, nil if there is none to believe.
func (w witnesses) recall(t *tracker, gang types.NamespacedName, fingerprint string) *shortfall {
	seen, ok := w[fingerprint]
	if fingerprint == "" || !ok || seen.gang == gang {
		return nil
	}
	gained, ok := t.stillWaits(seen.gang, seen.uid)
	if !ok {
		delete(w, fingerprint)
		return nil
	}
	why := seen.why
	// What came of its own search for room is no news of this one.
	why.took, why.helpless, why.again = 0, 0, time.Time{}
	if why.need.members > 0 {
		// What has become free since the witness was planned counts for this one too.
		why.need.members = max(1, why.need.members-gained)
	}
	return &why
}

// remember makes a gang that found no place a witness, if what kept it out would
// keep out others like it.
func (w witnesses) remember(fingerprint string, c *cycle, why *shortfall) {
	if fingerprint == "" || !why.certain {
		return
	}
	for _, class := range c.classes {
		if !class.labelBlind || !class.monotone {
			return
		}
	}
	w[fingerprint] = witness{gang: c.view.key, uid: c.view.group.UID, why: *why}
	if len(w) > mostWitnesses {
		w.sweep(c.tracker)
	}
}

// sweep forgets the witnesses that are not to be believed any more: nobody may ever ask
// for them. If all are, it forgets all, which costs some plans.
func (w witnesses) sweep(t *tracker) {
	maps.DeleteFunc(w, func(_ string, seen witness) bool {
		_, ok := t.stillWaits(seen.gang, seen.uid)
		return !ok
	})
	if len(w) > mostWitnesses {
		clear(w)
	}
}

// withdraw forgets what a gang has witnessed, because it is planned anew: its members
// or its minimum may have changed, and if it fails, it is as what it is now.
func (w witnesses) withdraw(gang types.NamespacedName) {
	maps.DeleteFunc(w, func(_ string, seen witness) bool { return seen.gang == gang })
}

// stillWaits says whether a gang that found no place waits as it did, and no
// event has woken it since; and how many members have gained room meanwhile.
func (t *tracker) stillWaits(key types.NamespacedName, uid types.UID) (gained int, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || g.group.UID != uid || !g.complete() || g.attempt.failures == 0 || t.isAwake(g) {
		return 0, false
	}
	return g.attempt.gained, true
}
