// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"math"
	"slices"
)

// World is the input of a plan: resources and nodes.
type World struct {
	// Resources names the resources that requests and free quantities count, in
	// their order.
	Resources []string
	// Nodes may hold members. Their order breaks ties.
	Nodes []Node
}

// Clone returns a copy whose free resources can be changed.
func (w *World) Clone() *World {
	c := &World{Resources: w.Resources, Nodes: slices.Clone(w.Nodes)}
	all := make([]int64, 0, len(w.Nodes)*len(w.Resources)) // mostly one allocation for all nodes
	for n := range c.Nodes {
		all = append(all, w.Nodes[n].Free...)
		c.Nodes[n].Free = slices.Clip(all[len(all)-len(w.Nodes[n].Free):])
	}
	return c
}

// Node is a node with what is free on it.
type Node struct {
	// Name is for explanations only.
	Name string
	// Free is what is left of each resource of the World, in the resource's unit. A negative quantity counts as 0.
	Free []int64
	// Preferred ranks nodes by what members prefer. A node with a higher value is filled first.
	Preferred int64
	// Lasts reports that the node is in use for as long as the gang would run there.
	Lasts bool
	// Score ranks nodes that otherwise are equally good. A node with a higher Score is filled first.
	Score int64
	// Domains has the node's domain for each level of the Gang, "" if the node has none.
	Domains []string
}

// Gang is a set of members to place together.
type Gang struct {
	// Min is the least number of members to place.
	Min int
	// MinRole is the least number of members to place, by role.
	MinRole map[string]int
	// Classes are the members, grouped by their needs.
	Classes []Class
	// Levels are the topology constraints, widest first.
	Levels []Level
	// LeastOnly leaves out the members above the minima.
	LeastOnly bool
	// IsOver reports whether the time for planning is over; nil means never. Once it returns true, no more members are
	// packed. A missing Plan then does not mean that there is no room.
	IsOver func() bool
}

// Class is a number of members with the same needs.
type Class struct {
	// Role is the role of these members, "" for none.
	Role string
	// Count is the number of members.
	Count int
	// Priority is the priority of the class's members. If not all members of a gang fit, classes of higher priority are
	// placed first, unless the minima can't be met in this way.
	Priority int32
	// Request is what one member takes of each resource of the World.
	Request []int64
	// Eligible reports for each node of the World whether the node may hold a member of the class, if resources are
	// left aside. If it is nil, every node may.
	Eligible []bool
	// PerNode is how many members may share a node. 0: any number.
	PerNode int
	// Spreads ask for even numbers of members in the domains of topologies. A plan respects them as far as possible.
	Spreads []Spread
	// Repels are the indexes of classes whose members may not share a node with members of this class. Each of these
	// classes lists this class in its Repels, too.
	Repels []int
}

// Level is one topology constraint.
type Level struct {
	// Key is the node label whose values are the domains. Only explanations use it.
	Key string
	// Required keeps all members in one domain. Otherwise few domains are
	// preferred.
	Required bool
	// Fixed is the domain in which members of the gang are placed already, "" for none. A Required level then allows no
	// other domain. Any other level prefers it.
	Fixed string
}

// Plan is a placement that keeps the minima of a Gang.
type Plan struct {
	// Assignments are ordered by class, and then by filling order of the nodes. In a class with Spreads, each member
	// has its own Assignment, in an order that the Spreads allow.
	Assignments []Assignment
	// Nodes are the indexes of all nodes in the plan's candidate set, in filling order. If plugins reject an
	// assignment, the caller looks for another place on these nodes.
	Nodes []int
}

// Assignment puts members of a class on a node.
type Assignment struct {
	Class, Node, Count int
}

// Count returns how many members of a class the plan places.
func (p *Plan) Count(class int) int {
	n := 0
	for _, a := range p.Assignments {
		if a.Class == class {
			n += a.Count
		}
	}
	return n
}

// size returns the number of members.
func (g *Gang) size() int {
	n := 0
	for i := range g.Classes {
		n += g.Classes[i].Count
	}
	return n
}

// isOver reports whether there is no time left.
func (g *Gang) isOver() bool { return g.IsOver != nil && g.IsOver() }

// IsLeast reports whether no member above the minima is to be placed.
func (g *Gang) IsLeast() bool {
	return g.LeastOnly || needed(g) >= g.size()
}

// eligible reports whether the class may use the node, apart from resources.
func (c *Class) eligible(node int) bool {
	return c.Eligible == nil || c.Eligible[node]
}

// slots returns how many members of the class fit into the free quantities of a node. The node's members of the class
// are not counted.
func (c *Class) slots(free []int64) int {
	n := math.MaxInt
	if c.PerNode > 0 {
		n = c.PerNode
	}
	for r, request := range c.Request {
		if request > 0 {
			n = min(n, int(max(free[r], 0)/request))
		}
	}
	return n
}
