// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"math/rand/v2"
	"testing"
)

// TestMembersAreSpread: a plan puts members in even numbers where they are to be spread, one after the other
// so that each is allowed with those before it. If not all can be, it places them all the same.
func TestMembersAreSpread(t *testing.T) {
	tests := map[string]struct {
		nodes  []int64
		count  int
		spread []Spread
		want   string
	}{
		"over nodes": {nodes: []int64{8, 8, 8}, count: 3,
			spread: []Spread{{Domain: []int{0, 1, 2}, Counts: []int{0, 0, 0}, MaxSkew: 1}}, want: "0@n0=1 0@n1=1 0@n2=1"},
		"over nodes, more than once": {nodes: []int64{8, 8}, count: 4,
			spread: []Spread{{Domain: []int{0, 1}, Counts: []int{0, 0}, MaxSkew: 1}}, want: "0@n0=1 0@n1=1 0@n1=1 0@n0=1"},
		"over zones": {nodes: []int64{8, 8, 8}, count: 3,
			spread: []Spread{{Domain: []int{0, 0, 1}, Counts: []int{0, 0}, MaxSkew: 1}}, want: "0@n0=1 0@n2=1 0@n2=1"},
		"beside Pods that are there": {nodes: []int64{8, 8}, count: 2,
			spread: []Spread{{Domain: []int{0, 1}, Counts: []int{2, 0}, MaxSkew: 1}}, want: "0@n1=1 0@n1=1"},
		"over nodes and zones": {nodes: []int64{8, 8, 8, 8}, count: 4,
			spread: []Spread{{Domain: []int{0, 1, 2, 3}, Counts: make([]int, 4), MaxSkew: 1}, {Domain: []int{0, 0, 1, 1}, Counts: make([]int, 2), MaxSkew: 1}},
			want:   "0@n0=1 0@n2=1 0@n3=1 0@n1=1"},
		"not where there is no domain": {nodes: []int64{8, 8}, count: 1,
			spread: []Spread{{Domain: []int{-1, 0}, Counts: []int{0}, MaxSkew: 1}}, want: "0@n1=1"},
		"as far as it goes": {nodes: []int64{8, 1}, count: 4,
			spread: []Spread{{Domain: []int{0, 1}, Counts: []int{0, 0}, MaxSkew: 1}}, want: "0@n0=1 0@n1=1 0@n0=1 0@n0=1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			world := &World{Resources: []string{"cpu"}, Nodes: nodes(tc.nodes...)}
			gang := &Gang{Min: tc.count, Classes: []Class{{Count: tc.count, Request: []int64{1}, Spreads: tc.spread}}}
			if got := show(world, firstPlan(world, gang)); got != tc.want {
				t.Errorf("plan %s, want %s", got, tc.want)
			}
		})
	}
}

// TestNoGangThatFitsExceedsTheNodes: what Exceeds rules out, an exhaustive search does not find either.
func TestNoGangThatFitsExceedsTheNodes(t *testing.T) {
	ruledOut, impossible := 0, 0
	for seed := range uint64(worlds) {
		world, gang := randomCase(rand.New(rand.NewPCG(seed, 5)), false)
		gang.Min = max(1, gang.Min)
		all := true
		for _, nodes := range Candidates(world, gang) {
			all = all && Exceeds(world, gang, nodes)
		}
		fits := twin(world, gang)
		if all && fits {
			t.Fatalf("seed %d: a gang that fits exceeds the nodes\nworld %+v\ngang %+v", seed, world, gang)
		}
		if !fits {
			impossible++
			if all {
				ruledOut++
			}
		}
	}
	if ruledOut*2 < impossible {
		t.Errorf("only %d of %d gangs that don't fit are ruled out", ruledOut, impossible)
	}
}
