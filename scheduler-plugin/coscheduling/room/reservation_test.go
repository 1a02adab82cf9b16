// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// noon is when tests begin.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	cpu    = corev1.ResourceCPU
	memory = corev1.ResourceMemory
	gpu    = corev1.ResourceName("nvidia.com/gpu")
)

// amounts are quantities of resources.
type amounts map[corev1.ResourceName]string

// podOn is a Pod on a node.
func podOn(t testing.TB, node, name string, request amounts) *framework.PodInfo {
	t.Helper()
	info, err := framework.NewPodInfo(schedulertesting.MakePod().Name(name).UID("uid-" + name).Node(node).Req(request).Obj())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// coresOn are Pods of one core, of the same name but for a number.
func coresOn(t testing.TB, node, name string, n int) []*framework.PodInfo {
	t.Helper()
	var pods []*framework.PodInfo
	for i := range n {
		pods = append(pods, podOn(t, node, fmt.Sprintf("%s-%d", name, i), amounts{cpu: "1"}))
	}
	return pods
}

// nodeWith is a node on which Pods run.
func nodeWith(name string, capacity amounts, pods ...*framework.PodInfo) *framework.NodeInfo {
	if capacity[corev1.ResourcePods] == "" {
		capacity[corev1.ResourcePods] = "110"
	}
	node := framework.NewNodeInfo()
	node.SetNode(schedulertesting.MakeNode().Name(name).Capacity(capacity).Obj())
	for _, pod := range pods {
		node.AddPodInfo(pod)
	}
	return node
}

// cluster is nodes by name.
type cluster map[string]fwk.NodeInfo

func (c cluster) Get(name string) (fwk.NodeInfo, error) {
	if node, ok := c[name]; ok {
		return node, nil
	}
	return nil, fmt.Errorf("there is no node %s", name)
}

// gang is one of a priority, whose PodGroup was created some seconds after noon.
func gang(name string, priority int32, created int) Gang {
	return Gang{UID: types.UID("uid-" + name), Rank: queue.Rank{
		Priority: priority, Created: noon.Add(time.Duration(created) * time.Second), Key: named(name)}}
}

func named(name string) dialect.Key {
	return dialect.Key{Namespace: "ns", Name: name}
}

func infos(pods []*framework.PodInfo) []fwk.PodInfo {
	var all []fwk.PodInfo
	for _, pod := range pods {
		all = append(all, pod)
	}
	return all
}

// evicting is a reservation for which Pods were evicted, vacant one of the room of Pods that end anyway.
func evicting(of Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Reservation {
	r := New(of, Preemption, members, awaited, end)
	r.Evicted = true
	return r
}

func vacant(of Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Reservation {
	return New(of, Preemption, members, awaited, end)
}

func toCome(of Gang, members []*framework.PodInfo, end time.Time) *Reservation {
	return New(of, MembersToCome, members, nil, end)
}

// TestWhichPodsLeaveRoomAlone: it is kept for a gang of priority 5, created ten seconds
// after noon.
func TestWhichPodsLeaveRoomAlone(t *testing.T) {
	holder := gang("gang", 5, 10)
	reservations := map[string]*Reservation{
		"reserved":   evicting(holder, nil, nil, noon),
		"vacant":     vacant(holder, nil, nil, noon),
		"for others": toCome(holder, nil, noon),
		"held back":  New(holder, InTime, nil, nil, noon),
	}
	tests := map[string]struct {
		priority         int32
		created          int
		owner            string
		reserved, vacant bool
		heldBack         bool
	}{
		"a Pod of lower priority, however old":                        {priority: 4, created: 1, reserved: true, vacant: true, heldBack: true},
		"a younger Pod of its priority, but for what ends anyway":     {priority: 5, created: 11, reserved: true, heldBack: true},
		"an older Pod of its priority, if others were evicted for it": {priority: 5, created: 9, reserved: true},
		"a Pod just as old, if others were evicted for it":            {priority: 5, created: 10, reserved: true},
		"no Pod of higher priority":                                   {priority: 6, created: 11},
		"a DaemonSet's, but for what is held back":                    {priority: 4, created: 11, owner: "DaemonSet", reserved: true, vacant: true},
		"a ReplicaSet's like any other":                               {priority: 4, created: 11, owner: "ReplicaSet", reserved: true, vacant: true, heldBack: true},
		"a DaemonSet's of its priority, if others were evicted":       {priority: 5, created: 11, owner: "DaemonSet", reserved: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := schedulertesting.MakePod().Name("ordinary").Priority(tc.priority).
				CreationTimestamp(metav1.NewTime(holder.Rank.Created.Add(time.Duration(tc.created-10) * time.Second))).Obj()
			if tc.owner != "" {
				controls := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: tc.owner, Name: "owner", Controller: &controls}}
			}
			for kind, want := range map[string]bool{"reserved": tc.reserved, "vacant": tc.vacant, "held back": tc.heldBack,
				"for others": tc.reserved && tc.owner != "DaemonSet"} {
				if got := reservations[kind].IsKeptFrom(PodTaker(pod, time.Time{})); got != want {
					t.Errorf("it leaves room alone that is %s: %v, want %v", kind, got, want)
				}
				room := &Room{}
				room.Keep(reservations[kind])
				if got := room.KeepsFrom(PodTaker(pod, time.Time{})); got != want {
					t.Errorf("room that is %s is ahead of it: %v, want %v", kind, got, want)
				}
			}
		})
	}
}

// TestWhichGangsLeaveRoomAlone: it is kept for a gang of priority 5, created ten seconds
// after noon.
func TestWhichGangsLeaveRoomAlone(t *testing.T) {
	holder := gang("gang", 5, 10)
	tests := map[string]struct {
		rank                       queue.Rank
		broken                     bool
		reserved, vacant, heldBack bool
	}{
		"a gang of lower priority, however old":                  {rank: gang("a", 4, 1).Rank, reserved: true, vacant: true, heldBack: true},
		"a younger gang of its priority, but for what ends":      {rank: gang("a", 5, 11).Rank, reserved: true, heldBack: true},
		"one just as old that comes after it by name":            {rank: gang("z", 5, 10).Rank, reserved: true, heldBack: true},
		"no older gang of its priority":                          {rank: gang("a", 5, 9).Rank},
		"no gang of higher priority":                             {rank: gang("a", 6, 11).Rank},
		"not the gang itself":                                    {rank: holder.Rank},
		"nor the gang itself, if its priority has fallen":        {rank: gang("gang", 4, 10).Rank},
		"one that is broken, but for what is held back":          {rank: gang("a", 4, 11).Rank, broken: true, reserved: true, vacant: true},
		"a broken one of its priority, if others were evicted":   {rank: gang("a", 5, 11).Rank, broken: true, reserved: true},
		"no broken one ahead, though others were evicted for it": {rank: gang("a", 5, 9).Rank, broken: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for kind, one := range map[string]struct {
				of   *Reservation
				want bool
			}{
				"reserved":  {evicting(holder, nil, nil, noon), tc.reserved},
				"vacant":    {vacant(holder, nil, nil, noon), tc.vacant},
				"held back": {New(holder, InTime, nil, nil, noon), tc.heldBack},
				"to come":   {toCome(holder, nil, noon), tc.reserved},
			} {
				room := &Room{}
				room.Keep(one.of)
				if got := len(room.KeptFrom(GangTaker(tc.rank, tc.broken, time.Time{}))) == 1; got != one.want {
					t.Errorf("it leaves room alone that is %s: %v, want %v", kind, got, one.want)
				}
			}
		})
	}
}

func TestWhatIsReservedOfANode(t *testing.T) {
	members := append(coresOn(t, "a", "here", 2), coresOn(t, "b", "there", 1)...)
	of := vacant(gang("gang", 0, 0), members, nil, noon)
	eight := amounts{cpu: "8"}
	for node, want := range map[string]int64{"a": 2000, "b": 1000, "c": 0} {
		if got := of.Reserved(nodeWith(node, eight)); got[cpu] != want {
			t.Errorf("%d millicores are reserved of %s, want %d", got[cpu], node, want)
		}
	}
}

// TestWhereAMemberGoes, as far as it is known when.
func TestWhereAMemberGoes(t *testing.T) {
	holder, members := gang("gang", 5, 10), append(coresOn(t, "a", "one", 2), coresOn(t, "b", "other", 1)...)
	tests := map[string]struct {
		of   *Reservation
		want map[types.UID]string
	}{
		"where victims end":                 {evicting(holder, members, nil, noon), map[types.UID]string{"uid-one-0": "a", "uid-one-1": "a", "uid-other-0": "b", "uid-else": ""}},
		"where Pods end anyway":             {vacant(holder, members, nil, noon), map[types.UID]string{"uid-one-0": "a", "uid-other-0": "b", "uid-else": ""}},
		"nowhere, if work may run for long": {New(holder, InTime, members, nil, noon), map[types.UID]string{"uid-one-0": "", "uid-other-0": ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for member, want := range tc.want {
				if got := tc.of.NodeFor(member); got != want {
					t.Errorf("%s goes to %q, want %q", member, got, want)
				}
			}
		})
	}
}
