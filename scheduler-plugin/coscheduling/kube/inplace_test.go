// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestATrialInPlaceLeavesTheSnapshotAsItWas: Pods are gone for plugins, and afterwards nodes have the same Pods, in the
// same order, and the same generation.
func TestATrialInPlaceLeavesTheSnapshotAsItWas(t *testing.T) {
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pods = append(pods, schedulertesting.MakePod().Name(name).UID(name).Node("node").Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj())
	}
	own := internalcache.NewSnapshot(pods, []*corev1.Node{schedulertesting.MakeNode().Name("node").Obj()})
	node := func() *framework.NodeInfo {
		info, err := own.Get("node")
		if err != nil {
			t.Fatal(err)
		}
		return info.(*framework.NodeInfo)
	}
	names := func() (names []string) {
		for _, info := range node().GetPods() {
			names = append(names, info.GetPod().Name)
		}
		return names
	}
	before, generation, first := names(), node().Generation, node().Pods[0]
	trial := InPlace(own, node().Pods)
	for range 2 {
		if err := trial.StartMutations(); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods[:2] {
			if err := trial.RemovePod(klog.Background(), pod, "node"); err != nil {
				t.Fatal(err)
			}
		}
		if err := trial.AddPod(first, "node"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"c", "a"}, names()); diff != "" || node().Requested.MilliCPU != 2000 {
			t.Errorf("during the trial %d millicores are in use, by (-want +got):\n%s", node().Requested.MilliCPU, diff)
		}
		if err := trial.EndMutations(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, names()); diff != "" || node().Requested.MilliCPU != 3000 || node().Generation != generation {
			t.Errorf("after the trial %d millicores are in use, generation %d in place of %d, by (-before +after):\n%s", node().Requested.MilliCPU, node().Generation, generation, diff)
		}
	}
}

// TestPodsThatAllNodesKnowOfAreTriedOnACopy: the snapshot lists the nodes of such Pods.
func TestPodsThatAllNodesKnowOfAreTriedOnACopy(t *testing.T) {
	own := internalcache.NewEmptySnapshot()
	for want, pod := range map[bool]*corev1.Pod{
		false: schedulertesting.MakePod().Name("plain").Obj(),
		true:  schedulertesting.MakePod().Name("averse").PodAntiAffinityExists("app", "zone", schedulertesting.PodAntiAffinityWithRequiredReq).Obj(),
	} {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		if got := InPlace(own, nil, []fwk.PodInfo{info}) == Snapshot(own); got != want {
			t.Errorf("%s: tried on a copy: %t, want %t", pod.Name, got, want)
		}
	}
}
