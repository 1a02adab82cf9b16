// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// bytesOf hands out what a fuzzer has made up, and zeros when that is at its end.
type bytesOf []byte

func (b *bytesOf) below(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0])
	*b = (*b)[1:]
	return v % n
}

// quantity is small, as most are, or any number.
func (b *bytesOf) quantity() int64 {
	if b.below(4) > 0 {
		return int64(b.below(8))
	}
	var word [8]byte
	*b = (*b)[copy(word[:], *b):]
	return int64(binary.LittleEndian.Uint64(word[:]))
}

// request is a quantity that is not negative, which the API server sees to.
func (b *bytesOf) request() int64 {
	return b.quantity() & math.MaxInt64
}

func (b *bytesOf) domain() string { return []string{"", "a", "b", "c"}[b.below(4)] }

// anyCase is a world and a gang without regard to sense.
func (b *bytesOf) anyCase() (*World, *Gang) {
	world, gang := &World{Resources: []string{"cpu", "gpu"}}, &Gang{MinRole: map[string]int{}}
	for range b.below(4) {
		gang.Levels = append(gang.Levels, Level{Key: "key", Required: b.below(2) == 0, Fixed: b.domain()})
	}
	for n := range b.below(9) {
		node := Node{Name: fmt.Sprint(n), Free: []int64{b.quantity(), b.quantity()}, Score: b.quantity()}
		for range gang.Levels {
			node.Domains = append(node.Domains, b.domain())
		}
		world.Nodes = append(world.Nodes, node)
	}
	for range b.below(5) {
		class := Class{Role: []string{"", "ps", "worker"}[b.below(3)], Count: b.below(200), Request: []int64{b.request(), b.request()}, PerNode: b.below(4)}
		if b.below(2) == 0 {
			for range world.Nodes {
				class.Eligible = append(class.Eligible, b.below(4) > 0)
			}
		}
		gang.Classes = append(gang.Classes, class)
	}
	gang.Min = b.below(250)
	for _, role := range []string{"ps", "worker"} {
		if b.below(3) == 0 {
			gang.MinRole[role] = b.below(100)
		}
	}
	return world, gang
}

// FuzzPlans: whatever the numbers, plans are valid; for members that are all alike
// there is one if and only if FitsOn says so; and if there is none something can be said
// of why.
func FuzzPlans(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a gang of some size in a world of some nodes, by chance"))
	f.Add([]byte{1, 0, 1, 2, 3, 1, 4, 1, 4, 1, 2, 1, 3, 0, 255, 255, 255, 255, 255, 255, 255, 127, 1, 1, 1, 2, 2, 9, 1, 1, 1, 1, 0, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		source := bytesOf(data)
		world, gang := source.anyCase()
		found := false
		for plan := range Plans(world, gang) {
			found = true
			check(t, world, gang, plan)
		}
		fits := slices.ContainsFunc(Candidates(world, gang), func(nodes []int) bool { return FitsOn(world, gang, nodes) })
		if fits != found && len(gang.Classes) == 1 {
			t.Errorf("it fits: %v, but there is a plan: %v", fits, found)
		}
		if short := Explain(world, gang); !found && short.Placed > short.Needed {
			t.Errorf("there is no plan, and %d of %d members could be placed", short.Placed, short.Needed)
		}
		if t.Failed() {
			t.Logf("world %+v\ngang %+v", world, gang)
		}
	})
}
