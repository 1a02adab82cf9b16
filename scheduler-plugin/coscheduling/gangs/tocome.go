// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// A group may announce what all of its members take, those that are still to come among them (package provision). The gang starts
// with room for all of that. From then on it may count on no more than was announced when it started, whatever its group asks for
// later.

// announce notes what is announced now. It is called when the gang has changed.
func (g *gang) announce() {
	switch {
	case g.group == nil || !g.runs():
		g.announced = nil
	case g.announced == nil:
		g.announced = g.group.Spec.Provision.Resources.AtMost(g.group.Spec.Provision.Resources)
	default:
		g.announced = g.announced.AtMost(g.group.Spec.Provision.Resources)
	}
}

// runs reports whether a member has a place and has not ended, or the next stage is to come.
func (g *gang) runs() bool {
	running := int(g.placed.Total)
	for _, n := range g.ended {
		running -= n
	}
	return running > 0 || g.isBetweenStages()
}

// isStarting reports whether the gang is to get its minimum for the first time, or anew as none of its members is left.
func (g *gang) isStarting() bool { return g.lacksMinimum() && !g.runs() }

// toCome returns what is announced without what the members take that have a place.
func (g *gang) toCome() provision.Amounts {
	announced := g.announced
	if g.isStarting() {
		announced = g.group.Spec.Provision.Resources
	}
	if announced.IsZero() {
		return nil
	}
	if g.takes == nil {
		g.takes = g.takesPlaced()
	}
	return announced.Less(g.takes)
}

// ToCome returns what is announced for the group with this UID and has not come. It is false if the group is gone, or none of its
// members runs.
func (t *Gangs) ToCome(key dialect.Key, uid types.UID) (provision.Amounts, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) || !g.runs() {
		return nil, false
	}
	return g.toCome(), true
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
