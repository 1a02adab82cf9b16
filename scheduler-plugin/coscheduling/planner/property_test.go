// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// worlds is how many random worlds a property is checked in.
const worlds = 4000

// randomCase makes a small world and a gang for it. All classes request the same
// if uniform.
func randomCase(r *rand.Rand, uniform bool) (*World, *Gang) {
	world := &World{Resources: []string{"cpu", "gpu"}}
	levels := r.IntN(3)
	gang := &Gang{MinRole: map[string]int{}}
	for range levels {
		gang.Levels = append(gang.Levels, Level{Key: "key", Required: r.IntN(2) == 0})
	}
	for n := range 1 + r.IntN(3) {
		node := Node{Name: fmt.Sprint(n), Free: []int64{r.Int64N(5) - 1, r.Int64N(4)}, Score: r.Int64N(3)}
		for range levels {
			node.Domains = append(node.Domains, []string{"", "a", "b"}[r.IntN(3)])
		}
		world.Nodes = append(world.Nodes, node)
	}
	size := 0
	for c := range 1 + r.IntN(3) {
		class := Class{Role: []string{"", "ps", "worker"}[r.IntN(3)], Count: 1 + r.IntN(3), Request: []int64{1, 1}}
		if !uniform {
			class.Request = []int64{r.Int64N(3), r.Int64N(3)}
		}
		if !uniform || c == 0 {
			class.PerNode = r.IntN(3)
			for range world.Nodes {
				class.Eligible = append(class.Eligible, r.IntN(4) > 0)
			}
		} else {
			class.PerNode, class.Eligible = 0, nil
		}
		size += class.Count
		gang.Classes = append(gang.Classes, class)
		if other := r.IntN(4); !uniform && other < c {
			gang.Classes[c].Repels = append(gang.Classes[c].Repels, other)
			gang.Classes[other].Repels = append(gang.Classes[other].Repels, c)
		}
		if class.Role != "" && r.IntN(3) == 0 {
			gang.MinRole[class.Role] = 1 + r.IntN(2)
		}
		if uniform {
			break
		}
	}
	gang.Min = r.IntN(size + 1)
	return world, gang
}

// twin is the slow planner: it tries all placements of all members and says
// whether one keeps the minima.
func twin(world *World, gang *Gang) bool {
	for _, c := range candidates(world, gang) {
		placed := make([]int, len(gang.Classes))
		counts := make(map[[2]int]int)
		free := make(map[int][]int64)
		for _, n := range c.nodes {
			free[n] = append([]int64(nil), world.Nodes[n].Free...)
		}
		var try func(class, member int) bool
		try = func(class, member int) bool {
			if holds(gang, placed) {
				return true
			}
			if class == len(gang.Classes) {
				return false
			}
			k := &gang.Classes[class]
			if member == k.Count {
				return try(class+1, 0)
			}
			for _, n := range c.nodes {
				key := [2]int{class, n}
				if !k.eligible(n) || k.slots(free[n]) == 0 || k.PerNode > 0 && counts[key] == k.PerNode ||
					slices.ContainsFunc(k.Repels, func(other int) bool { return counts[[2]int{other, n}] > 0 }) {
					continue
				}
				move(free[n], k.Request, -1)
				counts[key]++
				placed[class]++
				if try(class, member+1) {
					return true
				}
				placed[class]--
				counts[key]--
				move(free[n], k.Request, 1)
			}
			return try(class+1, 0) // the members of a class are alike: leave the rest of them out
		}
		if try(0, 0) {
			return true
		}
	}
	return false
}

func move(free, request []int64, sign int64) {
	for r := range free {
		free[r] += sign * request[r]
	}
}

func holds(gang *Gang, placed []int) bool {
	total, roles := 0, map[string]int{}
	for c, n := range placed {
		total += n
		roles[gang.Classes[c].Role] += n
	}
	for role, least := range gang.MinRole {
		if roles[role] < least {
			return false
		}
	}
	return total >= gang.Min
}

// check fails the test if a plan breaks a rule of the world or of the gang.
func check(t *testing.T, world *World, gang *Gang, plan Plan) {
	t.Helper()
	placed := make([]int, len(gang.Classes))
	free := make([][]int64, len(world.Nodes))
	for n := range world.Nodes {
		free[n] = append([]int64(nil), world.Nodes[n].Free...)
	}
	domains := make([]map[string]bool, len(gang.Levels))
	for l := range domains {
		domains[l] = map[string]bool{}
	}
	for _, a := range plan.Assignments {
		k := &gang.Classes[a.Class]
		for _, b := range plan.Assignments {
			if a.Node == b.Node && slices.Contains(k.Repels, b.Class) {
				t.Errorf("%+v and %+v share a node, but repel each other", a, b)
			}
		}
		placed[a.Class] += a.Count
		if a.Count < 1 || !k.eligible(a.Node) || k.PerNode > 0 && a.Count > k.PerNode {
			t.Errorf("%+v is not allowed", a)
		}
		for range a.Count {
			if k.slots(free[a.Node]) < 1 {
				t.Errorf("%+v does not fit", a)
			}
			move(free[a.Node], k.Request, -1)
		}
		for l := range gang.Levels {
			domains[l][world.Nodes[a.Node].Domains[l]] = true
		}
	}
	for c, n := range placed {
		if n > gang.Classes[c].Count {
			t.Errorf("%d members of class %d are placed, it has %d", n, c, gang.Classes[c].Count)
		}
	}
	if !holds(gang, placed) {
		t.Errorf("the minima do not hold with %v", placed)
	}
	for l, level := range gang.Levels {
		if level.Required && (len(domains[l]) > 1 || domains[l][""]) {
			t.Errorf("level %d is required, but domains are %v", l, domains[l])
		}
	}
}

// TestPlansAreValid: whatever the world, a plan places only what fits and is
// allowed, and keeps the minima.
func TestPlansAreValid(t *testing.T) {
	for seed := range uint64(worlds) {
		world, gang := randomCase(rand.New(rand.NewPCG(seed, 1)), false)
		for plan := range Plans(world, gang) {
			check(t, world, gang, plan)
		}
		if t.Failed() {
			t.Fatalf("seed %d\nworld %+v\ngang %+v", seed, world, gang)
		}
	}
}

// TestUniformGangsAreExact: a gang of equal members has a plan if and only if
// there is any placement that keeps its minima.
func TestUniformGangsAreExact(t *testing.T) {
	for seed := range uint64(worlds) {
		world, gang := randomCase(rand.New(rand.NewPCG(seed, 2)), true)
		if got, want := firstPlan(world, gang) != nil, twin(world, gang); got != want {
			t.Fatalf("seed %d: plan %v, but the exhaustive search says %v\nworld %+v\ngang %+v", seed, got, want, world, gang)
		}
	}
}

// maxMissed is how many in a thousand placeable gangs of unequal members the
// heuristic may miss in these worlds, which are made to be tight: nodes hold a
// member or two, and some classes share none. It is measured, and there to notice when a change makes it
// worse.
const maxMissed = 7

// TestUnequalGangsAreRarelyMissed: packing unequal members is a heuristic. It
// never claims a placement that is not there, and rarely misses one.
func TestUnequalGangsAreRarelyMissed(t *testing.T) {
	placeable, missed := 0, 0
	for seed := range uint64(worlds) {
		world, gang := randomCase(rand.New(rand.NewPCG(seed, 3)), false)
		got, want := firstPlan(world, gang) != nil, twin(world, gang)
		if got && !want {
			t.Fatalf("seed %d: a plan where no placement exists\nworld %+v\ngang %+v", seed, world, gang)
		}
		if want {
			placeable++
			if !got {
				missed++
			}
		}
	}
	t.Logf("missed %d of %d placeable gangs", missed, placeable)
	if missed*1000 > maxMissed*placeable {
		t.Errorf("missed %d of %d placeable gangs, more than %d in a thousand", missed, placeable, maxMissed)
	}
}

// TestShortfallExplains: where there is no plan, fewer members than needed have
// a place.
func TestShortfallExplains(t *testing.T) {
	for seed := range uint64(worlds) {
		world, gang := randomCase(rand.New(rand.NewPCG(seed, 4)), true)
		if firstPlan(world, gang) != nil || !attainable(gang) {
			continue
		}
		if short := Explain(world, gang); short.Needed > 0 && short.Placed >= short.Needed {
			t.Fatalf("seed %d: no plan, but %+v\nworld %+v\ngang %+v", seed, short, world, gang)
		}
	}
}

func BenchmarkPlans(b *testing.B) {
	world := &World{Resources: []string{"cpu", "memory", "storage", "pods"}}
	for n := range 5000 {
		world.Nodes = append(world.Nodes, Node{Name: fmt.Sprint(n), Free: []int64{32000, 64 << 30, 1 << 40, 110}, Domains: []string{fmt.Sprint(n % 50)}})
	}
	for name, levels := range map[string][]Level{
		"anywhere": {{Key: "rack", Required: false}}, "in a rack": {{Key: "rack", Required: true}},
	} {
		gang := &Gang{Min: 1000, Levels: levels, Classes: []Class{{Count: 1000, Request: []int64{1000, 1 << 30, 0, 1}}}}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if firstPlan(world, gang) == nil {
					b.Fatal("no plan")
				}
			}
		})
	}
}
