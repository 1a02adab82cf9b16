// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// TestRoomIsLeftToGangsAhead: a hundred members of gangs ahead are on each of ten nodes. They are put into the snapshot only if plugins, or
// the gang, see more of them than what they take.
func TestRoomIsLeftToGangsAhead(t *testing.T) {
	core := map[corev1.ResourceName]string{"cpu": "1", "example.com/gpu": "2"}
	tests := map[string]struct {
		member, ahead func(*schedulertesting.PodWrapper)
		first         bool
		want          int // how many Pods are put there
	}{
		"plain Pods": {want: 0},
		"plain Pods, for a gang that reserves room itself": {want: 1000, first: true},
		"members that regard others": {want: 1000, member: func(w *schedulertesting.PodWrapper) {
			w.PodAntiAffinityExists("x", "zone", schedulertesting.PodAntiAffinityWithRequiredReq)
		}},
		"Pods that keep others away": {want: 1000, ahead: func(w *schedulertesting.PodWrapper) {
			w.PodAntiAffinityExists("x", "zone", schedulertesting.PodAntiAffinityWithRequiredReq)
		}},
		"Pods that take a port": {want: 1000, ahead: func(w *schedulertesting.PodWrapper) { w.HostPort(80) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot := nodesOf(10, 200)
			pod := func(name string, change func(*schedulertesting.PodWrapper)) *schedulertesting.PodWrapper {
				w := schedulertesting.MakePod().Namespace("ns").Name(name).UID(name).Req(core)
				if change != nil {
					change(w)
				}
				return w
			}
			var places []*framework.PodInfo
			for i := range 1000 {
				info, err := framework.NewPodInfo(pod(fmt.Sprint("ahead-", i), tc.ahead).Node(fmt.Sprint("node-", i%10)).Obj())
				if err != nil {
					t.Fatal(err)
				}
				places = append(places, info)
			}
			reserved := []*room.Reservation{room.New(room.Gang{}, room.Preemption, places[:400], nil, time.Time{}), room.New(room.Gang{}, room.Preemption, places[400:], nil, time.Time{})}
			gang := &Gang{View: gangs.View{Waiting: []*corev1.Pod{pod("gang-0", tc.member).Obj()}, ClassKeys: []string{"class"}}, First: tc.first}
			ahead, err := respect(&Cluster{Ahead: reserved, Snapshot: snapshot}, gang)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(ahead.pods); got != tc.want {
				t.Errorf("%d Pods are put into the snapshot, want %d", got, tc.want)
			}
			nodes, err := snapshot.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range nodes {
				fits := func(cores string) bool {
					info, err := framework.NewPodInfo(pod("other", nil).Req(map[corev1.ResourceName]string{"cpu": cores}).Obj())
					if err != nil {
						t.Fatal(err)
					}
					return room.Fits(room.TakesOf(info), nil, node) && ahead.counted.leaveRoom(info, node)
				}
				if fits("101") || !fits("99") {
					t.Errorf("of the 200 cores of %s 100 are reserved; it has room for 101: %t, for 99: %t", node.Node().Name, fits("101"), fits("99"))
				}
			}
			ahead.leave(t.Context())
			for _, node := range nodes {
				if used := node.GetRequested(); used.GetMilliCPU() != 0 {
					t.Errorf("%s has %+v taken afterwards", node.Node().Name, used)
				}
			}
		})
	}
}
