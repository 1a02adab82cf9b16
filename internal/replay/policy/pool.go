// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// pool is the free units of nodes.
type pool struct {
	// free is by the number of a node.
	free []int
	// with is how many nodes have so many units free.
	with []int
}

func newPool(nodes workload.Nodes) *pool {
	p := &pool{free: slices.Clone(nodes), with: make([]int, nodes.Largest()+1)}
	for _, units := range nodes {
		p.with[units]++
	}
	return p
}

func (p *pool) clone() *pool {
	return &pool{free: slices.Clone(p.free), with: slices.Clone(p.with)}
}

// none reports whether no unit is free.
func (p *pool) none() bool { return p.with[0] == len(p.free) }

func (p *pool) add(nodes []int, units int) {
	for _, node := range nodes {
		p.with[p.free[node]]--
		p.free[node] += units
		p.with[p.free[node]]++
	}
}

func (p *pool) remove(nodes []int, units int) { p.add(nodes, -units) }

// fits reports whether Pods fit. If so, the nodes with fewer than `below` free units have room for all of them.
func (p *pool) fits(pods, units int) (below int, ok bool) {
	fit, below := 0, units
	for ; below < len(p.with) && fit < pods; below++ {
		fit += p.with[below] * (below / units)
	}
	return below, fit >= pods
}

// place returns a node for each Pod, or nil if the Pods don't fit. It prefers nodes with little room, so that large
// jobs find whole nodes.
func (p *pool) place(pods, units int) []int {
	below, ok := p.fits(pods, units)
	if !ok {
		return nil
	}
	nodes := make([]int, 0, pods)
	for free := units; free < below; free++ {
		if p.with[free] == 0 {
			continue
		}
		for node, has := range p.free {
			for n := has / units; has == free && n > 0 && len(nodes) < pods; n-- {
				nodes = append(nodes, node)
			}
			if len(nodes) == pods {
				return nodes
			}
		}
	}
	return nodes
}

// placeIn returns a node for each Pod, or nil if the Pods don't fit. The nodes are taken in an order.
func (p *pool) placeIn(order []int, pods, units int) []int {
	var nodes []int
	for _, node := range order {
		for n := p.free[node] / units; n > 0 && len(nodes) < pods; n-- {
			nodes = append(nodes, node)
		}
		if len(nodes) == pods {
			return nodes
		}
	}
	return nil
}
