// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// counted is a claim that counts how often it was looked at.
type counted struct {
	Claim
	looks *int
}

func (c counted) Gang() Gang {
	*c.looks++
	return c.Claim.Gang()
}

func (c counted) IsKeptFromPod(pod *corev1.Pod) bool {
	*c.looks++
	return c.Claim.IsKeptFromPod(pod)
}

func (c counted) Reserved(node fwk.NodeInfo) Usage {
	*c.looks++
	return c.Claim.Reserved(node)
}

// TestClaimsOnOtherNodesCostNothing: one gang has room kept on the node that an ordinary Pod looks at,
// and on which another Pod has just come; thousands have it elsewhere.
func TestClaimsOnOtherNodesCostNothing(t *testing.T) {
	looks := func(others int) int {
		var room Room
		var n int
		room.Keep(counted{NewProvision(gang("here", 5, 0), coresOn(t, "a", "here", 2), noon), &n})
		for i := range others {
			name := fmt.Sprintf("other-%d", i)
			room.Keep(counted{NewProvision(gang(name, 5, i), coresOn(t, fmt.Sprintf("node-%d", i%50), name, 1), noon), &n})
		}
		n = 0
		pod := schedulertesting.MakePod().Name("ordinary").Obj()
		request := podOn(t, "", "ordinary", amounts{cpu: "2"}).CalculateResource().Resource
		if !room.KeepsFromPod(pod) {
			t.Fatal("the Pod need not leave anything alone")
		}
		if room.MayTake(pod, request, nodeWith("a", amounts{cpu: "3"})) {
			t.Error("it may take what is kept")
		}
		if !room.MayTake(pod, request, nodeWith("free", amounts{cpu: "3"})) {
			t.Error("it may not take what is free")
		}
		room.ProvisionsOn("a")
		room.InOrder()
		return n
	}
	if few, many := looks(1), looks(5000); many > few {
		t.Errorf("it takes %d looks at claims, and %d with thousands on other nodes", few, many)
	}
}

// TestTheIndexesOfRoomAreRight: claims come, move and go at random, and each node and the order have
// those that there are.
func TestTheIndexesOfRoomAreRight(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		var room Room
		for range 60 {
			owner := gang(fmt.Sprint("gang-", r.IntN(8)), int32(r.IntN(3)), r.IntN(3))
			switch r.IntN(4) {
			case 0:
				room.Drop(owner.Rank.Key)
			case 1:
				if claim := room.Of(owner.Rank.Key); claim != nil {
					room.End(claim)
				}
			default:
				members := coresOn(t, fmt.Sprint("node-", r.IntN(4)), owner.Rank.Key.Name, 1+r.IntN(2))
				members = append(members, coresOn(t, fmt.Sprint("node-", r.IntN(4)), owner.Rank.Key.Name+"-more", 1)...)
				room.Keep(NewProvision(owner, members, noon))
			}
			if room.IsEmpty() != (len(room.byGang) == 0) || len(room.InOrder()) != len(room.byGang) {
				t.Fatalf("seed %d: %d claims are in order, want %d", seed, len(room.InOrder()), len(room.byGang))
			}
			for i, claim := range room.InOrder() {
				if room.byGang[claim.Gang().Rank.Key] != claim || i > 0 && compareClaims(room.ordered[i-1], claim) >= 0 {
					t.Fatalf("seed %d: %s are in order, which is not so", seed, gangsOf(room.InOrder()))
				}
			}
			for i := range 4 {
				node, want := fmt.Sprint("node-", i), 0
				for _, claim := range room.byGang {
					if claim.(*Provision).IsOn(node) {
						want++
					}
				}
				if got := len(room.ProvisionsOn(node)); got != want {
					t.Fatalf("seed %d: %d claims are on %s, want %d", seed, got, node, want)
				}
			}
			if len(room.byNode) > 4 || room.IsEmpty() && len(room.byNode) > 0 {
				t.Fatalf("seed %d: %d nodes are remembered", seed, len(room.byNode))
			}
		}
	}
}
