// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// leaveClosed has a class do without the nodes that are to be maintained before the gang ends. What the gang lacks is not known then.
func (c *class) leaveClosed(world *planner.World, isClosed func(node string) bool) {
	if isClosed == nil {
		return
	}
	fits, closed := slices.Clone(c.fits), 0
	for n, may := range fits {
		if may && isClosed(world.Nodes[n].Name) {
			fits[n] = false
			closed++
		}
	}
	if closed > 0 {
		c.fits, c.labelBlind = fits, false
		c.reasons[maintenance.Closed] = closed
	}
}
