// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestRoomForMembersToComeIsThereOrNot: it is not if somebody ahead has taken it, or the node is gone or
// cordoned. Two members of 2 cpu are to come to a node of 5.
func TestRoomForMembersToComeIsThereOrNot(t *testing.T) {
	virtual := func(name string) *framework.PodInfo {
		info, err := framework.NewPodInfo(schedulertesting.MakePod().Name(name).UID(name).Node("node").
			Req(map[corev1.ResourceName]string{"cpu": "2"}).Obj())
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	claim := NewProvision(gang("gang", 5, 10), []*framework.PodInfo{virtual("a"), virtual("b")}, noon)
	if want := (provision.Amounts{"cpu": 4000}); !claim.Held().Equal(want) {
		t.Errorf("room for %s is kept, want %s", claim.Held(), want)
	}
	if !claim.IsOn("node") || claim.IsOn("other") {
		t.Error("it is kept on another node")
	}
	if node := claim.NodeFor("a"); node != "" {
		t.Errorf("a member that nobody has seen is said to go to %s", node)
	}
	for name, tc := range map[string]struct {
		cores    string
		cordoned bool
		name     string
		want     bool
	}{
		"it is there beside a Pod": {cores: "1", name: "node", want: true},
		"somebody has taken of it": {cores: "2", name: "node"},
		"the node is gone":         {cores: "1", name: "other"},
		"the node is cordoned":     {cores: "1", name: "node", cordoned: true},
	} {
		t.Run(name, func(t *testing.T) {
			info := framework.NewNodeInfo(schedulertesting.MakePod().Name("runs").UID("runs").Node("node").
				Req(map[corev1.ResourceName]string{"cpu": tc.cores}).Obj())
			node := schedulertesting.MakeNode().Name(tc.name).Capacity(map[corev1.ResourceName]string{"cpu": "5", "pods": "9"}).Obj()
			node.Spec.Unschedulable = tc.cordoned
			info.SetNode(node)
			if got := claim.Stands(cluster{tc.name: info}); got != tc.want {
				t.Errorf("the room is there: %t, want %t", got, tc.want)
			}
		})
	}
	all := &Room{}
	all.Keep(claim)
	if on := all.ProvisionsOn("node"); len(on) != 1 || len(all.ProvisionsOn("other")) > 0 {
		t.Errorf("on the node %d are kept", len(on))
	}
}
