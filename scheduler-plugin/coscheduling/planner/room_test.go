// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"math/rand/v2"
	"testing"
)

// TestRoomFollowsChanges has Pods come and go at random, and compares what a Room says with what is found by packing
// anew. It may find room that a packing from nothing misses.
func TestRoomFollowsChanges(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		world, gang := randomCase(r, seed%2 == 0)
		room := NewRoom(world, gang)
		for _, nodes := range Candidates(world, gang) {
			room.On(nodes)
			for range 12 {
				sign := int64(1 - 2*r.IntN(2))
				room.Change(r.IntN(len(world.Nodes)), []int64{r.Int64N(3), r.Int64N(3)}, sign)
				spared, packed, want := room.Fits(false), room.Fits(true), FitsOn(world, gang, nodes)
				if want && !packed || packed && !want && !twin(world, gang) || spared && !packed || len(gang.Classes) == 1 && packed != want {
					t.Fatalf("seed %d: fits %v, without packing %v, want %v\nworld %+v\ngang %+v", seed, packed, spared, want, world, gang)
				}
			}
		}
	}
}
