// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestWorkedExample is that of docs/scheduler-design.md: three gangs that need a rack
// for themselves, one after the other.
func TestWorkedExample(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inOneRack := func(s *schedulingv1alpha1.PodGroupSpec) {
			s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		}
		gang := func(name string, members int) []apiruntime.Object {
			return all(makeGroup(name, int32(members), inOneRack), makeMembers(name, members))
		}
		w := newWorld(t, all(makeNodes("a", 2, 4, "rack=a"), makeNodes("b", 3, 4, "rack=b"), makeNodes("c", 2, 4, "rack=c"),
			makePod("database", onNode("a-0"), func(p *schedulertesting.PodWrapper) {
				p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}) // a second container
			}))...)
		w.start()
		createAll := func(objects []apiruntime.Object) {
			for _, object := range objects {
				w.create(object)
			}
		}
		allIn := func(name, rack string, members int) {
			t.Helper()
			w.eventually(name+" is placed", func() bool { return w.placed(name) == members })
			for pod, node := range w.nodeOf() {
				if strings.HasPrefix(pod, name) && !strings.HasPrefix(node, rack) {
					t.Errorf("%s is on %s, want it in rack %s", pod, node, rack)
				}
			}
		}

		createAll(gang("ring", 8))
		allIn("ring", "c", 8)
		createAll(gang("mesh", 10))
		allIn("mesh", "b", 10)
		createAll(gang("star", 8))
		got := w.condition("star", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		want := "there is room for 6 of the 8 members that are needed in the best domain, rack=a; the others are short of 2 cpu"
		if got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if n := w.placed("star"); n != 0 {
			t.Errorf("%d members are placed of a gang that waits", n)
		}
		w.deletePod("database")
		allIn("star", "a", 8)
	})
}
