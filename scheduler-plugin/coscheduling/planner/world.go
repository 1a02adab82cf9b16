// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import "math"

// World is the cluster as a plan sees it.
type World struct {
	// Resources names the resources that requests and free quantities count, in
	// their order.
	Resources []string
	// Nodes may hold members. Their order breaks ties.
	Nodes []Node
}

// Node is a node with what is free on it.
type Node struct {
	// Name is for explanations only.
	Name string
	// Free is what is left of each resource of the World, in its unit. A
	// negative quantity is the same as none.
	Free []int64
	// Score ranks nodes that are equal otherwise; higher is filled first.
	Score int64
	// Domains is the node's domain for each level of the Gang, empty where the
	// node has none.
	Domains []string
}

// Gang is a set of members to place together.
type Gang struct {
	// Min is how many members must be placed at least.
	Min int
	// MinRole is how many members of a role must be among them.
	MinRole map[string]int
	// Classes are the members, grouped.
	Classes []Class
	// Levels are the topology constraints, widest first.
	Levels []Level
	// LeastOnly leaves out the members above the minima.
	LeastOnly bool
	// IsOver reports whether there is no time left, nil for never. No more members are packed then, and whoever asks has
	// to take no for an answer to another question.
	IsOver func() bool
}

// Class is a number of members that need the same.
type Class struct {
	// Role is the role of these members, empty for none.
	Role string
	// Count is how many they are.
	Count int
	// Priority is theirs. Where not all members fit, those of a higher one are placed first,
	// as far as the minima can be held so.
	Priority int32
	// Request is what one of them takes of each resource of the World.
	Request []int64
	// Eligible says for each node of the World whether it may hold a member of
	// the class, resources aside. Nil: every node may.
	Eligible []bool
	// PerNode is how many members may share a node. 0: any number.
	PerNode int
	// Spreads are where the members are to be in even numbers. A plan keeps to that as far as it can.
	Spreads []Spread
	// Repels are other classes, by index, of which no member may share a node with one
	// of this class. It is mutual: each of them repels this class too.
	Repels []int
}

// Level is one topology constraint.
type Level struct {
	// Key is the node label whose values are the domains, for explanations.
	Key string
	// Required keeps all members in one domain. Otherwise few domains are
	// preferred.
	Required bool
	// Fixed is the domain where members of the gang are placed already, empty
	// for none. A Required level allows no other, a Preferred one tries it first.
	Fixed string
}

// Plan is a placement that keeps the minima of a Gang.
type Plan struct {
	// Assignments are ordered by class, and then as the nodes were filled. Members of a class with Spreads have
	// one each, in an order in which the spreads allow them.
	Assignments []Assignment
	// Nodes are the indexes of the nodes of the candidate that the plan uses,
	// in the order in which they were filled: where to look for another place
	// if an assignment cycles out not to hold.
	Nodes []int
}

// Assignment puts members of a class on a node.
type Assignment struct {
	Class, Node, Count int
}

// Count is how many members of a class the plan places.
func (p *Plan) Count(class int) int {
	n := 0
	for _, a := range p.Assignments {
		if a.Class == class {
			n += a.Count
		}
	}
	return n
}

// size is how many members the gang has.
func (g *Gang) size() int {
	n := 0
	for i := range g.Classes {
		n += g.Classes[i].Count
	}
	return n
}

// isOver says whether there is no time left.
func (g *Gang) isOver() bool { return g.IsOver != nil && g.IsOver() }

// IsLeast says whether no member is above the minima.
func (g *Gang) IsLeast() bool {
	return g.LeastOnly || needed(g) >= g.size()
}

// eligible says whether the class may use the node, resources aside.
func (c *Class) eligible(node int) bool {
	return c.Eligible == nil || c.Eligible[node]
}

// slots is how many members of the class fit into the free quantities, not
// counting members of its own that are there already.
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
