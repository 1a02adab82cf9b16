// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import "fmt"

// A group ranks no higher than its Pods do. Quota and admission say who may have Pods
// of which PriorityClass, and ask nobody about the class of a PodGroup: if that alone
// counted, whoever may create PodGroups could evict anybody.

// ReasonCapped: the group counts with a lower priority than that of its PriorityClass, because its
// Pods have a lower one.
const ReasonCapped = "PriorityClassCapped"

// Capping is what to tell a group whose PriorityClass is worth more than its Pods have,
// once they are there. It is empty if there is nothing to tell, or the group was told.
func (g *Gang) Capping() string {
	if g.Group == nil || g.Record.ToldCapped || g.Highest == nil || g.Class == nil || *g.Class <= *g.Highest {
		return ""
	}
	if !g.complete() && !g.Assumed {
		return "" // its Pods are still to come, or the scheduler before this one has told it
	}
	of := "the value of its PriorityClass " + g.Group.Spec.PriorityClassName
	if g.Group.Spec.PriorityClassName == "" {
		of = "its own"
	}
	return fmt.Sprintf("the group ranks with the priority %d, the highest of its Pods, and not with %d, %s: "+
		"a group ranks no higher than its Pods do", *g.Highest, *g.Class, of)
}
