// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// nodes are some nodes with so much free of one resource.
func nodes(free ...int64) *planner.World {
	world := &planner.World{Resources: []string{"gpu"}}
	for n, of := range free {
		world.Nodes = append(world.Nodes, planner.Node{Name: fmt.Sprint(n), Free: []int64{of}})
	}
	return world
}

func works(on map[int]time.Duration) []Work {
	var all []Work
	for node, ends := range on {
		all = append(all, Work{Ends: ends, Takes: []Take{{node, []int64{8}}}})
	}
	return all
}

// gang needs whole nodes, and runs for a time.
func gang(members int, runs time.Duration) Gang {
	return Gang{Need: &planner.Gang{Min: members, Classes: []planner.Class{{Count: members, Request: []int64{8}}}}, Runs: runs}
}

// half needs half of a node.
func half(runs time.Duration) Gang {
	of := gang(1, runs)
	of.Need.Classes[0].Request[0] = 4
	return of
}

func never() bool { return false }

func in(starts []Start) []time.Duration {
	var all []time.Duration
	for _, start := range starts {
		all = append(all, start.In)
	}
	return all
}

func TestWhenGangsStart(t *testing.T) {
	const h = time.Hour
	for name, test := range map[string]struct {
		free           []int64
		ends           map[int]time.Duration
		gangs          []Gang
		inOrder, eases []time.Duration
	}{
		"one that fits starts now": {
			free: []int64{8}, gangs: []Gang{gang(1, h)},
			inOrder: []time.Duration{0}, eases: []time.Duration{0},
		},
		"one that does not waits for the work that ends first": {
			free: []int64{0, 0, 0}, ends: map[int]time.Duration{0: 3 * h, 1: h, 2: 2 * h}, gangs: []Gang{gang(2, h)},
			inOrder: []time.Duration{2 * h}, eases: []time.Duration{2 * h},
		},
		"the second one waits for the first one, too": {
			free: []int64{0, 0}, ends: map[int]time.Duration{0: h, 1: 2 * h}, gangs: []Gang{gang(2, 5*h), gang(1, h)},
			inOrder: []time.Duration{2 * h, 7 * h}, eases: []time.Duration{2 * h, h},
		},
		"a short one overtakes a gang that has to wait anyway, a long one does not": {
			free: []int64{8, 0}, ends: map[int]time.Duration{1: 2 * h}, gangs: []Gang{gang(2, h), gang(1, 3*h), gang(1, h)},
			inOrder: []time.Duration{2 * h, 3 * h, 3 * h}, eases: []time.Duration{2 * h, 3 * h, 0},
		},
		"a long one has what the first one leaves": {
			free: []int64{4, 0, 8}, ends: map[int]time.Duration{1: h}, gangs: []Gang{gang(2, h), half(9 * h)},
			inOrder: []time.Duration{h, h}, eases: []time.Duration{h, 0},
		},
		"nothing is known of what waits for work without an end": {
			free: []int64{0, 0}, ends: map[int]time.Duration{0: h, 1: Never}, gangs: []Gang{gang(2, h), gang(1, h)},
			inOrder: []time.Duration{Never, Never}, eases: []time.Duration{Never, h},
		},
		"nor of a gang behind one that runs for an unknown time": {
			free: []int64{0}, ends: map[int]time.Duration{0: h}, gangs: []Gang{gang(1, Never), gang(1, h)},
			inOrder: []time.Duration{h, Never}, eases: []time.Duration{h, Never},
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := nodes(test.free...)
			if diff := cmp.Diff(test.inOrder, in(InOrder(world, works(test.ends), test.gangs, never))); diff != "" {
				t.Errorf("in order (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.eases, in(Backfilled(world, works(test.ends), test.gangs, never))); diff != "" {
				t.Errorf("with backfill (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(nodes(test.free...), world); diff != "" {
				t.Errorf("the world has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGangWaitsForADomain(t *testing.T) {
	world := nodes(0, 0, 0, 0)
	racked := gang(2, time.Hour)
	racked.Need.Levels = []planner.Level{{Key: "rack", Required: true}}
	racked.Domains = [][]string{{"a"}, {"b"}, {"a"}, {"b"}}
	starts := InOrder(world, works(map[int]time.Duration{0: 1, 1: 2, 2: 4, 3: 3}), []Gang{racked}, never)
	if diff := cmp.Diff([]Start{{In: 3, Nodes: []int{1, 3}}}, starts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatThereIsNoTimeForIsUnknown(t *testing.T) {
	asked := 0
	isOver := func() bool { asked++; return asked > 2 }
	starts := Backfilled(nodes(8, 8), nil, []Gang{gang(1, 1), gang(1, 1)}, isOver)
	if diff := cmp.Diff([]time.Duration{0, Never}, in(starts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// BenchmarkAHundredGangs wait on 20,000 nodes that 20,000 jobs fill.
func BenchmarkAHundredGangs(b *testing.B) {
	world := nodes(make([]int64, 20_000)...)
	var running []Work
	for n := range world.Nodes {
		running = append(running, Work{Ends: time.Duration(1+(n*7919)%86400) * time.Second, Takes: []Take{{n, []int64{8}}}})
	}
	var gangs []Gang
	for i := range 100 {
		gangs = append(gangs, gang(1+i*3, time.Duration(600+(i*7919)%86400)*time.Second))
	}
	for name, plays := range map[string]func(*planner.World, []Work, []Gang, func() bool) []Start{"in order": InOrder, "backfilled": Backfilled} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				plays(world, running, gangs, never)
			}
		})
	}
}
