// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestResourcesThatDevicesProvide: of an extended resource that a DeviceClass provides a node has none itself. So a Pod that
// asks for it fits beside room that is kept, and room for members that ask for it may be free.
func TestResourcesThatDevicesProvide(t *testing.T) {
	for name, tc := range map[string]struct {
		gpus string // that the node has
		want bool
	}{
		"a class of devices provides it": {"", true},
		"the node has enough":            {"4", true},
		"the node has too few":           {"1", false},
	} {
		t.Run(name, func(t *testing.T) {
			capacity := map[corev1.ResourceName]string{"cpu": "10", "pods": "10"}
			if tc.gpus != "" {
				capacity["example.com/gpu"] = tc.gpus
			}
			node := framework.NewNodeInfo()
			node.SetNode(schedulertesting.MakeNode().Name("node").Capacity(capacity).Obj())
			info, err := framework.NewPodInfo(schedulertesting.MakePod().Name("pod").Req(map[corev1.ResourceName]string{"cpu": "1", "example.com/gpu": "2"}).Obj())
			if err != nil {
				t.Fatal(err)
			}
			if got := Fits(TakesOf(info), nil, node); got != tc.want {
				t.Errorf("what members take is free: %t, want %t", got, tc.want)
			}
			if got := Fits(TakesOf(info), TakesOf(info), node); got != tc.want {
				t.Errorf("another Pod fits beside it: %t, want %t", got, tc.want)
			}
		})
	}
}
