// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/cputime"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// large is a cluster of 5000 nodes that are full with 1000 gangs of nine Pods, and a gang of a
// thousand members that waits. It outranks the others or not.
func large(outranks bool) *Snapshot {
	s := &Snapshot{Now: noon}
	for n := range 5000 {
		s.Nodes = append(s.Nodes, node(fmt.Sprintf("node-%d", n), "2"))
	}
	for g := range 1000 {
		group, pods := gangOf(fmt.Sprintf("gang-%d", g), 9)
		s.Groups = append(s.Groups, group)
		for i, pod := range pods {
			on(fmt.Sprintf("node-%d", (9*g+i)%5000))(pod)
		}
		s.Pods = append(s.Pods, pods...)
	}
	change := func(*corev1.Pod) {}
	if outranks {
		change = priority(5)
	}
	group, pods := gangOf("train", 1000, asking(corev1.ResourceCPU, "2"), change)
	s.Groups, s.Pods = append(s.Groups, group), append(s.Pods, pods...)
	return s
}

// BenchmarkWhy is how long an answer takes that needs all of a plan, on 5000 nodes and 10,000 Pods.
func BenchmarkWhy(b *testing.B) {
	for name, tc := range map[string]struct {
		outranks bool
		want     answers.Reason
	}{"no room": {want: answers.ReasonNotEnoughResources}, "victims": {outranks: true, want: answers.ReasonPreempting}} {
		b.Run(name, func(b *testing.B) {
			s := large(tc.outranks)
			report := cputime.Start(b)
			for b.Loop() {
				if got := Why(s, key("train")); got.Reason != tc.want {
					b.Fatal(got.Reason, got.Message)
				}
			}
			report(b.N)
		})
	}
}
