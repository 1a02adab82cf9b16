// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestWhateverKeepsRoomForMembersToComeCounts: a namespace has its share by the sum of it. Each claim is for
// a member that waits, and for two that are to come, of 1 cpu.
func TestWhateverKeepsRoomForMembersToComeCounts(t *testing.T) {
	members := func() []*framework.PodInfo {
		all := coresOn(t, "a", "member", 1)
		for i := range 2 {
			info, err := framework.NewPodInfo(schedulertesting.MakePod().Name("to-come").UID(string(provision.UID("group", i))).Node("a").
				Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info)
		}
		return all
	}
	for name, one := range map[string]*Reservation{
		"for members to come": toCome(gang("gang", 0, 0), members()[1:], noon),
		"for preemption":      evicting(gang("gang", 0, 0), members(), nil, noon),
		"that has moved":      New(gang("gang", 0, 0), InTime, members(), nil, noon),
	} {
		t.Run(name, func(t *testing.T) {
			var all Room
			all.Keep(one)
			all.Keep(vacant(gang("other", 0, 0), coresOn(t, "a", "other", 3), nil, noon))
			key := one.Gang.Rank.Key
			want := provision.Amounts{"cpu": 2000, "pods": 2}
			if got, members := all.ToCome(dialect.Key{Namespace: key.Namespace}); !got.Equal(want) || members != 2 {
				t.Errorf("%s is reserved for %d members, want %s for 2", got, members, want)
			}
			if got, members := all.ToCome(key); !got.IsZero() || members != 0 {
				t.Errorf("but for the gang itself %s is reserved for %d", got, members)
			}
			if got, members := all.ToCome(dialect.Key{Namespace: "another"}); !got.IsZero() || members != 2 {
				t.Errorf("in another namespace %s is reserved, and for %d members in all", got, members)
			}
		})
	}
}

// TestACapIsForAllReasonsTogether: reservations count in the order of their gangs, whatever their reason, and what preemption makes
// room for is never given up.
func TestACapIsForAllReasonsTogether(t *testing.T) {
	var all Room
	all.Keep(evicting(gang("high", 9, 0), coresOn(t, "a", "high", 3), nil, noon))
	starving := gang("starving", 5, 0)
	all.Keep(New(starving, InTime, coresOn(t, "b", "starving", 2), nil, noon))
	all.Keep(toCome(gang("spark", 4, 0), coresOn(t, "c", "spark", 4), noon))
	all.Keep(vacant(gang("low", 3, 0), coresOn(t, "d", "low", 9), nil, noon))
	all.Keep(toCome(gang("small", 2, 0), coresOn(t, "e", "small", 1), noon))
	for cores, want := range map[int64]string{8: "[spark small]", 18: "[small]", 19: "[]"} {
		if got := gangsOf(all.Beyond(provision.Amounts{"cpu": cores * 1000, "pods": 100}, starving.Rank)); got != want {
			t.Errorf("of %d cores %s have more than may be, want %s", cores, got, want)
		}
	}
	if got := all.TakenAhead(gang("spark", 4, 0).Rank); !got.Equal(provision.Amounts{"cpu": 5000, "pods": 5}) {
		t.Errorf("%s is reserved for those ahead, want 5 cpu", got)
	}
}

// TestMembersThatComeHaveTheRoomOfTheirGang: a reservation is given over to them, and what has no room any more is lost.
func TestMembersThatComeHaveTheRoomOfTheirGang(t *testing.T) {
	members := append(coresOn(t, "a", "to-come", 3), coresOn(t, "b", "to-come-there", 2)...)
	r := toCome(gang("gang", 0, 0), members, noon)
	there := func(taken int) cluster {
		return cluster{"a": nodeWith("a", amounts{cpu: "4"}, coresOn(t, "a", "came", taken)...), "b": nodeWith("b", amounts{cpu: "8"})}
	}
	cordoned := there(0)
	cordoned["b"].Node().Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		most  int64
		nodes Nodes
		a, b  int // members that stay
	}{
		"all stays":                             {5, there(1), 3, 2},
		"a member that came took of it":         {4, there(2), 2, 2},
		"a member came to another node":         {4, there(0), 3, 1},
		"somebody ahead took of it":             {5, there(3), 1, 2},
		"a node is gone":                        {5, cluster{"b": there(0)["b"]}, 0, 2},
		"a node is cordoned":                    {5, cordoned, 3, 0},
		"less is announced":                     {2, nil, 2, 0},
		"all have come":                         {0, nil, 0, 0},
		"what is left is smaller than a member": {-1, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			on := make(map[string]int)
			left := r.Within(provision.Amounts{"cpu": max(tc.most*1000, 0)}, tc.nodes)
			if left != nil {
				for _, m := range left.Members {
					on[m.Pod.Spec.NodeName]++
				}
			}
			if on["a"] != tc.a || on["b"] != tc.b || (left == r) != (tc.a+tc.b == 5) {
				t.Errorf("it stays on %v, want %d and %d", on, tc.a, tc.b)
			}
		})
	}
}
