// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTheIndexesOfRoomAreRight: claims come, move and go at random, and each node and the order have
// those that there are.
func TestTheIndexesOfRoomAreRight(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		var room Room
		for range 60 {
			owner := gang(fmt.Sprint("gang-", r.IntN(8)), int32(r.IntN(3)), r.IntN(3))
			switch r.IntN(3) {
			case 0:
				if claim := room.Of(owner.Rank.Key); claim != nil {
					room.End(claim)
				}
			default:
				members := coresOn(t, fmt.Sprint("node-", r.IntN(4)), owner.Rank.Key.Name, 1+r.IntN(2))
				members = append(members, coresOn(t, fmt.Sprint("node-", r.IntN(4)), owner.Rank.Key.Name+"-more", 1)...)
				room.Keep(toCome(owner, members, noon))
			}
			if room.IsEmpty() != (len(room.byGang) == 0) || len(room.InOrder()) != len(room.byGang) {
				t.Fatalf("seed %d: %d claims are in order, want %d", seed, len(room.InOrder()), len(room.byGang))
			}
			for i, claim := range room.InOrder() {
				if room.byGang[claim.Gang.Rank.Key] != claim || i > 0 && compareReservations(room.ordered[i-1], claim) >= 0 {
					t.Fatalf("seed %d: %s are in order, which is not so", seed, gangsOf(room.InOrder()))
				}
			}
			for i := range 4 {
				node, want := fmt.Sprint("node-", i), 0
				for _, claim := range room.byGang {
					if claim.IsOn(node) {
						want++
					}
				}
				if got := len(room.byNode[node]); got != want {
					t.Fatalf("seed %d: %d claims are on %s, want %d", seed, got, node, want)
				}
			}
			if len(room.byNode) > 4 || room.IsEmpty() && len(room.byNode) > 0 {
				t.Fatalf("seed %d: %d nodes are remembered", seed, len(room.byNode))
			}
		}
	}
}
