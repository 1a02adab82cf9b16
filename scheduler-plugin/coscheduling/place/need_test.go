// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestOnlyHelpfulEventsWakeAGang: the gang lacks room for four members of one
// core and one GPU each.
func TestOnlyHelpfulEventsWakeAGang(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	ended := func(cores, gpus string, options ...func(*schedulertesting.PodWrapper)) *corev1.Pod {
		w := schedulertesting.MakePod().Name("ended").Req(map[corev1.ResourceName]string{corev1.ResourceCPU: cores, gpu: gpus})
		for _, o := range options {
			o(w)
		}
		return w.Obj()
	}
	node := func(cores, gpus string) *corev1.Node {
		return schedulertesting.MakeNode().Name("node").
			Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: cores, gpu: gpus, corev1.ResourcePods: "10"}).Obj()
	}
	cordoned := func(node *corev1.Node) *corev1.Node {
		node.Spec.Unschedulable = true
		return node
	}
	tests := map[string]struct {
		pods  []*corev1.Pod
		nodes []*corev1.Node
		other bool // the gang lacks something else too
		// foreign says that no node has GPUs: an extender gives them.
		foreign, tolerant bool
		want              bool
	}{
		"one Pod of many that would have to end": {
			pods: []*corev1.Pod{ended("1", "1")},
		},
		"as many as might do": {
			pods: []*corev1.Pod{ended("1", "1"), ended("1", "1")}, want: true,
		},
		"one large Pod": {
			pods: []*corev1.Pod{ended("3", "3")}, want: true,
		},
		"one that leaves much of what nodes need not have": {
			pods: []*corev1.Pod{ended("1", "3")}, foreign: true, want: true,
		},
		"one that leaves a host port": {
			pods: []*corev1.Pod{ended("1", "1", func(w *schedulertesting.PodWrapper) { w.HostPort(80) })}, want: true,
		},
		"any, if it is not only room that is missing": {
			pods: []*corev1.Pod{ended("1", "1")}, other: true, want: true,
		},
		"a node without what all members need": {
			nodes: []*corev1.Node{node("64", "0")},
		},
		"a node that need not have it": {
			nodes: []*corev1.Node{node("64", "0")}, foreign: true, want: true,
		},
		"a node that is cordoned": {
			nodes: []*corev1.Node{cordoned(node("8", "1"))},
		},
		"a node that is cordoned, if a member tolerates that": {
			nodes: []*corev1.Node{cordoned(node("8", "1"))}, tolerant: true, want: true,
		},
		"a node for a member": {
			nodes: []*corev1.Node{node("8", "1")}, want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first := ended("1", "1")
			if tc.tolerant {
				first.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
			}
			info, err := framework.NewPodInfo(first)
			if err != nil {
				t.Fatal(err)
			}
			found := &survey{provided: map[corev1.ResourceName]bool{gpu: !tc.foreign}, classes: []*class{{info: info, labelBlind: !tc.other}}}
			need := needOf(found, &Shortfall{Certain: true, Needed: 6, Room: 1, Most: 2}, &seeker{})

			now, key := time.Now(), dialect.Key{Name: "gang"}
			gangs := queue.New()
			gangs.Enter(queue.Rank{Key: key}, true, now)
			gangs.Begin(key, now, now)
			gangs.Refused(key, queue.Refusal{Message: "no room", Need: need}, queue.Terms{}, now)
			for _, pod := range tc.pods {
				gangs.Happened(PodEnded(pod), now)
			}
			for _, n := range tc.nodes {
				gangs.Happened(NodeChanged(n), now)
			}
			if _, got := gangs.Next(now); got != tc.want {
				t.Errorf("the gang has another turn is %v, want %v", got, tc.want)
			}
		})
	}
}

// TestASidecarLeavesItsPort: a Pod whose sidecar had a port of the node leaves more than it took.
func TestASidecarLeavesItsPort(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	for policy, want := range map[*corev1.ContainerRestartPolicy]bool{&always: true, &never: false, nil: false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{RestartPolicy: policy, Ports: []corev1.ContainerPort{{HostPort: 80}}}}}}
		if got := PodEnded(pod).Unbounded; got != want {
			t.Errorf("an init container of the policy %v: what it leaves is unbounded: %t, want %t", policy, got, want)
		}
	}
}
