// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// mayTake says whether a Pod of low priority may go to a node beside reservations.
func mayTake(t *testing.T, request provision.Amounts, node fwk.NodeInfo, all ...*Reservation) bool {
	t.Helper()
	var room Room
	for _, r := range all {
		room.Keep(r)
	}
	return room.MayTake(PodTaker(schedulertesting.MakePod().Priority(-1).Obj(), time.Time{}), request, node)
}

// TestWhatAnOrdinaryPodMayTake: on a node of 8 cores, 2 GPUs and 10 Pods run one Pod of 2
// cores, and members of 3 cores and a GPU are to come.
func TestWhatAnOrdinaryPodMayTake(t *testing.T) {
	tests := map[string]struct {
		request amounts
		pods    string // that the node allows
		members int
		want    bool
	}{
		"what fits beside the member":                {request: amounts{cpu: "3", gpu: "1"}, members: 1, want: true},
		"no core more":                               {request: amounts{cpu: "4"}, members: 1},
		"no GPU more":                                {request: amounts{gpu: "2"}, members: 1},
		"nothing, if it requests that":               {members: 1, want: true},
		"not the member's place among Pods":          {pods: "2", members: 1},
		"more is kept than is free, of what it asks": {request: amounts{cpu: "1"}, members: 3},
		"more is kept than is free, of other things": {members: 3, want: true},
		"all, where nothing is kept":                 {request: amounts{cpu: "6", gpu: "2"}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.pods == "" {
				tc.pods = "10"
			}
			node := nodeWith("a", amounts{cpu: "8", gpu: "2", corev1.ResourcePods: tc.pods}, podOn(t, "a", "runs", amounts{cpu: "2"}))
			// Each of them is of another gang.
			var all []*Reservation
			for i := range tc.members {
				name := fmt.Sprint("gang-", i)
				member := podOn(t, "a", name, amounts{cpu: "3", gpu: "1"})
				all = append(all, vacant(gang(name, 0, 0), []*framework.PodInfo{member}, nil, noon))
			}
			request := TakesOf(podOn(t, "", "ordinary", tc.request))
			if got := mayTake(t, request, node, all...); got != tc.want {
				t.Errorf("it may take it: %v, want %v", got, tc.want)
			}
		})
	}
}

// TestADeviceIsKeptThoughNoCoreIs: the Pods that a gang waits for take as many cores as the
// gang will. Of the two GPUs that it needs one is free.
func TestADeviceIsKeptThoughNoCoreIs(t *testing.T) {
	awaited := podOn(t, "a", "job", amounts{cpu: "4", gpu: "1"})
	member := podOn(t, "a", "member", amounts{cpu: "1", gpu: "2"})
	inTime := New(gang("gang", 0, 0), InTime, []*framework.PodInfo{member}, infos([]*framework.PodInfo{awaited}), noon)
	node := nodeWith("a", amounts{cpu: "8", gpu: "2"}, awaited)
	request := func(of amounts) bool {
		return mayTake(t, TakesOf(podOn(t, "", "ordinary", of)), node, inTime)
	}
	if request(amounts{gpu: "1"}) {
		t.Error("an ordinary Pod takes the GPU that is free")
	}
	if !request(amounts{cpu: "4"}) {
		t.Error("an ordinary Pod does not get the cores that are free, and not needed")
	}
}

// dumb counts in units of each resource, in a table.
type dumb map[corev1.ResourceName]int64

// randomPod takes a little of some resources.
func randomPod(t *testing.T, r *rand.Rand, name string) (*framework.PodInfo, dumb) {
	request, count := amounts{}, dumb{corev1.ResourcePods: 1}
	for _, resource := range []corev1.ResourceName{cpu, memory, gpu, corev1.ResourceEphemeralStorage} {
		if n := r.Int64N(4); n > 0 {
			request[resource], count[resource] = fmt.Sprint(n), n
		}
	}
	return podOn(t, "a", name, request), count
}

func (d dumb) add(other dumb) {
	for resource, n := range other {
		d[resource] += n
	}
}

// TestRoomIsCountedAsADumbOneCountsIt: in small random worlds the answers of the package are
// those of a table of resources and, where no Pod's end is awaited, those of kube-scheduler
// when the members are there.
func TestRoomIsCountedAsADumbOneCountsIt(t *testing.T) {
	var taken, refused, free, full int
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 0))
		capacity, has := amounts{}, dumb{}
		for _, resource := range []corev1.ResourceName{cpu, memory, gpu, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
			n := 4 + r.Int64N(10)
			capacity[resource], has[resource] = fmt.Sprint(n), n
		}
		used, kept, awaitedTake := dumb{}, dumb{}, dumb{}
		var runs, awaited, members []*framework.PodInfo
		for i := range r.IntN(4) {
			pod, takes := randomPod(t, r, fmt.Sprint("runs-", i))
			runs = append(runs, pod)
			used.add(takes)
			if r.IntN(2) == 0 {
				awaited = append(awaited, pod)
				awaitedTake.add(takes)
			}
		}
		if r.IntN(4) == 0 { // it has ended by now
			pod, _ := randomPod(t, r, "ended")
			awaited = append(awaited, pod)
		}
		for i := range 1 + r.IntN(3) {
			pod, takes := randomPod(t, r, fmt.Sprint("member-", i))
			members = append(members, pod)
			kept.add(takes)
		}
		node := nodeWith("a", capacity, runs...)
		ordinary, request := randomPod(t, r, "ordinary")
		may := func(of *Reservation) bool {
			return mayTake(t, TakesOf(ordinary), node, of)
		}

		// While the members are on the way, kube-scheduler would see them on the node.
		soon := nodeWith("a", capacity, append(runs, members...)...)
		want := len(noderesources.Fits(ordinary.Pod, soon, nil, noderesources.ResourceRequestsOptions{})) == 0
		if got := may(vacant(gang("gang", 0, 0), members, nil, noon)); got != want {
			t.Fatalf("seed %d: it may take what is not reserved: %v; kube-scheduler says %v", seed, got, want)
		}

		inTime := New(gang("gang", 0, 0), InTime, members, infos(awaited), noon)
		wantMay, wantStands, something := true, true, false
		for resource, capacity := range has {
			left := max(0, kept[resource]-awaitedTake[resource])
			something = something || left > 0
			if request[resource] > 0 && used[resource]+left+request[resource] > capacity {
				wantMay = false
			}
			if kept[resource] > 0 && used[resource]+kept[resource]-awaitedTake[resource] > capacity {
				wantStands = false
			}
		}
		wantMay = wantMay || !something
		if got := may(inTime); got != wantMay {
			t.Fatalf("seed %d: it may take what is not held back: %v; the table says %v", seed, got, wantMay)
		}
		if got := NewInTime(gang("gang", 0, 0), members, nil, someTime(awaited), cluster{"a": node}, noon) != nil; got != wantStands {
			t.Fatalf("seed %d: the gang has its room when they have ended: %v; the table says %v", seed, got, wantStands)
		}
		for _, counted := range []struct {
			yes     bool
			of, not *int
		}{{wantMay, &taken, &refused}, {wantStands, &free, &full}} {
			if counted.yes {
				*counted.of++
			} else {
				*counted.not++
			}
		}
	}
	if min(taken, refused, free, full) < 400 {
		t.Errorf("the worlds are too much alike: taken %d, refused %d; free %d, full %d", taken, refused, free, full)
	}
}
