// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import "github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"

// GroupsOf returns the groups of all gangs that have one, in no order.
func GroupsOf(t *Gangs) []*dialect.Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	groups := make([]*dialect.Group, 0, len(t.gangs))
	for _, g := range t.gangs {
		if g.group != nil {
			groups = append(groups, g.group)
		}
	}
	return groups
}
