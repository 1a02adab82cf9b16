// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"
	"time"

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
	first := NewBarrier(gang("barrier", 0, 0), members(), nil, time.Minute, noon)
	for name, claim := range map[string]Claim{
		"a provision":        NewProvision(gang("provision", 0, 0), members()[1:], noon),
		"a reservation":      NewReservation(gang("reservation", 0, 0), members(), nil, noon),
		"a vacancy":          NewVacancy(gang("vacancy", 0, 0), members(), nil, noon),
		"a barrier":          first,
		"one that has moved": first.MovedTo(gang("barrier", 0, 0), members(), nil),
	} {
		t.Run(name, func(t *testing.T) {
			var all Room
			all.Keep(claim)
			all.Keep(NewVacancy(gang("other", 0, 0), coresOn(t, "a", "other", 3), nil, noon))
			key := claim.Gang().Rank.Key
			want := provision.Amounts{"cpu": 2000, "pods": 2}
			if got, gangs := all.ToCome(key.Namespace, dialect.Key{}); !got.Equal(want) || gangs != 1 {
				t.Errorf("%s is kept for %d gangs, want %s for 1", got, gangs, want)
			}
			if got, gangs := all.ToCome(key.Namespace, key); !got.IsZero() || gangs != 0 {
				t.Errorf("but for the gang itself %s is kept for %d", got, gangs)
			}
			if got, but := all.MembersToCome(dialect.Key{}), all.MembersToCome(key); got != 2 || but != 0 {
				t.Errorf("it is kept for %d members of all gangs, and for %d but for the gang itself; want 2 and 0", got, but)
			}
			if got, _ := all.ToCome("another", dialect.Key{}); !got.IsZero() {
				t.Errorf("in another namespace %s is kept", got)
			}
		})
	}
}
