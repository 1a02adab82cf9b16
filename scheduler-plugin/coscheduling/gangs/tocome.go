// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// A group may announce what all members take, including members that are still to come (package provision). The gang
// starts with room for all of that. From then on it may count on no more than the announcement at the start, whatever
// its group asks for later.

// announce updates g.announced, the resources that the gang may reserve for all its members. Call it when the gang has
// changed.
func announce(g *gang) {
	switch {
	case g.group == nil || !runs(g):
		g.announced = nil
	case g.announced == nil:
		g.announced = g.group.Spec.Provision.Resources.AtMost(g.group.Spec.Provision.Resources)
	default:
		g.announced = g.announced.AtMost(g.group.Spec.Provision.Resources)
	}
}

// runs reports whether a member has a place and has not ended, or another stage is to come.
func runs(g *gang) bool {
	running := int(g.placed.Total)
	for _, n := range g.ended {
		running -= n
	}
	return running > 0 || isBetweenStages(g)
}

// isStarting reports whether the gang lacks its minimum and no member runs. It starts for the first time, or again
// after all members are gone.
func isStarting(g *gang) bool { return g.lacksMinimum() && !runs(g) }

// toCome returns the announced amounts minus what placed members take.
func toCome(g *gang) provision.Amounts {
	announced := g.announced
	if isStarting(g) {
		announced = g.group.Spec.Provision.Resources
	}
	if announced.IsZero() {
		return nil
	}
	if g.takes == nil {
		g.takes = takesPlaced(g)
	}
	return announced.Less(g.takes)
}

// takesPlaced returns what the placed members take.
func takesPlaced(g *gang) provision.Amounts {
	sum := make(provision.Amounts)
	for _, m := range g.members {
		if g.state(m) == memberPlaced {
			sum.Add(provision.OfPod(m.pod))
		}
	}
	return sum
}
