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

// TestRoomIsLeftToGangsAhead: a hundred members of gangs ahead are on each of ten nodes. Plain Pods are not put into the snapshot
// before a search needs them there, unless the gang that is planned tells Pods apart.
func TestRoomIsLeftToGangsAhead(t *testing.T) {
	core := map[corev1.ResourceName]string{"cpu": "1", "example.com/gpu": "2"}
	tests := map[string]struct {
		member, ahead func(*schedulertesting.PodWrapper)
		want          int // how many Pods are put there
	}{
		"plain Pods": {want: 0},
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
			gang := &Gang{View: gangs.View{Waiting: []*corev1.Pod{pod("gang-0", tc.member).Obj()}, ClassKeys: []string{"class"}}}
			ahead, err := respect(reserved, snapshot, gang)
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
			wantTaken := func(cores, gpus int64) {
				t.Helper()
				for _, node := range nodes {
					if used := node.GetRequested(); used.GetMilliCPU() != 1000*cores || used.GetScalarResources()["example.com/gpu"] != gpus {
						t.Errorf("%s has %+v taken, want %d cores and %d GPUs", node.Node().Name, used, cores, gpus)
					}
				}
			}
			if err := ahead.assumeAll(); err != nil {
				t.Fatal(err)
			}
			wantTaken(100, 200)
			ahead.leave(t.Context())
			wantTaken(0, 0)
		})
	}
}
