// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// TestRoomBesideAHold: on a node of 8 cores, 2 GPUs and 10 Pods run one Pod of 2
// cores, and a member of 3 cores and a GPU is to come.
func TestRoomBesideAHold(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	requesting := func(name, cores, gpus string) *framework.PodInfo {
		request := map[corev1.ResourceName]string{}
		if cores != "" {
			request[corev1.ResourceCPU] = cores
		}
		if gpus != "" {
			request[gpu] = gpus
		}
		info, err := framework.NewPodInfo(schedulertesting.MakePod().Name(name).Req(request).Obj())
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	tests := map[string]struct {
		request     *framework.PodInfo
		pods        string // that the node allows
		heldMembers int
		want        bool
	}{
		"a Pod that fits beside the member":          {request: requesting("pod", "3", "1"), want: true},
		"one core too many":                          {request: requesting("pod", "4", "")},
		"a GPU too many":                             {request: requesting("pod", "", "2")},
		"a Pod that requests nothing":                {request: requesting("pod", "", ""), want: true},
		"its place among the node's Pods":            {request: requesting("pod", "", ""), pods: "2"},
		"more held than is free, of what it needs":   {request: requesting("pod", "1", ""), heldMembers: 3},
		"more held than is free, of what it doesn't": {request: requesting("pod", "", ""), heldMembers: 3, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.pods == "" {
				tc.pods = "10"
			}
			node := framework.NewNodeInfo(requesting("runs", "2", "").Pod)
			node.SetNode(schedulertesting.MakeNode().Name("node").Capacity(map[corev1.ResourceName]string{
				corev1.ResourceCPU: "8", gpu: "2", corev1.ResourcePods: tc.pods,
			}).Obj())
			held := usage{}
			for range max(1, tc.heldMembers) {
				member := usage{}
				member.addMember(requesting("member", "3", "1"))
				held.add(&member)
			}
			if got := held.leaves(tc.request.CalculateResource().Resource, node); got != tc.want {
				t.Errorf("there is room: %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWhoLeavesHeldRoomAlone: room is held for a gang of priority 5 that is as old
// as second 10.
func TestWhoLeavesHeldRoomAlone(t *testing.T) {
	tests := map[string]struct {
		priority                      int32
		created                       int
		daemon                        bool
		wantIfStarves, wantIfPreempts bool
	}{
		"a Pod of lower priority":                      {priority: 4, created: 1, wantIfStarves: true, wantIfPreempts: true},
		"a younger Pod of its priority":                {priority: 5, created: 11, wantIfStarves: true, wantIfPreempts: true},
		"not an older one, but for what it preempted":  {priority: 5, created: 9, wantIfPreempts: true},
		"not a Pod of higher priority":                 {priority: 6, created: 11},
		"not a DaemonSet's, but for what it preempted": {priority: 4, created: 11, daemon: true, wantIfPreempts: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := makePod("ordinary", ofPriority(tc.priority), createdAt(tc.created))
			if tc.daemon {
				owner := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: &owner}}
			}
			for preempts, want := range map[bool]bool{false: tc.wantIfStarves, true: tc.wantIfPreempts} {
				h := &hold{preempts: preempts, rank: line.Rank{Priority: 5, Created: bornAt(10, makeGroup("", 1)).CreationTimestamp.Time}}
				if got := h.isAhead(pod); got != want {
					t.Errorf("it leaves room alone that is held (for preemption: %v): %v, want %v", preempts, got, want)
				}
			}
		})
	}
}
