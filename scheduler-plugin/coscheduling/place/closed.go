// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Closed is the reason why work may not start on a node that is to be maintained before the work ends.
const Closed = "node(s) are to be maintained before the work ends"

// leaveClosed excludes, for this class, the nodes that are to be maintained before the gang ends. As a consequence,
// what the gang needs counts as unknown in the queue.
func (c *class) leaveClosed(world *planner.World, isClosed func(node string) bool) {
	if isClosed == nil {
		return
	}
	fits := slices.Clone(c.fits)
	for n, may := range fits {
		if may && isClosed(world.Nodes[n].Name) {
			fits[n] = false
			c.closed++
		}
	}
	if c.closed > 0 {
		c.fits, c.labelBlind = fits, false
	}
}
