// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// relabel gives a Pod labels, and waits until the scheduler has seen them.
func (w *world) relabel(name string, labels map[string]string) {
	w.t.Helper()
	pods := w.kube.CoreV1().Pods(testNamespace)
	pod, err := pods.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pod.Labels = labels
	pod.ResourceVersion = name + fmt.Sprint(labels) // a scheduler ignores updates that change nothing
	if _, err := pods.Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the scheduler has seen the labels", func() bool {
		seen, err := w.sched.Cache.GetPod(pod)
		return err == nil && fmt.Sprint(seen.Labels) == fmt.Sprint(labels)
	})
}

// TestLabelsOfOthersAreNothingToAGangThatLacksRoom: programs change labels of Pods that run
// all the time. The gang is not planned for it.
func TestLabelsOfOthersAreNothingToAGangThatLacksRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 1), makePod("one", onNode("node-0")), makePod("other", onNode("node-1")),
			makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("nothing is left to be planned", w.quiet)
		before := w.cycles()
		for i := range 20 {
			w.relabel("one", map[string]string{"step": fmt.Sprint(i)})
		}
		w.eventually("nothing is left to be planned", w.quiet)
		if n := w.cycles() - before; n != 0 {
			t.Errorf("%d cycles for labels of another Pod", n)
		}
		w.deletePod("one")
		w.deletePod("other")
		w.eventually("the gang is placed when there is room", func() bool { return w.placed("gang") == 2 })
	})
}

// TestAPodThatIsRelabelledHelpsAGangThatRegardsIt: there is room all the time.
func TestAPodThatIsRelabelledHelpsAGangThatRegardsIt(t *testing.T) {
	red, none := map[string]string{"colour": "red"}, map[string]string{"colour": "none"}
	tests := map[string]struct {
		member        podOption
		before, after map[string]string
	}{
		"it is to be near such a Pod": {
			member: func(w *schedulertesting.PodWrapper) {
				w.PodAffinityExists("colour", corev1.LabelHostname, schedulertesting.PodAffinityWithRequiredReq)
			},
			before: nil, after: red,
		},
		"it is not to be near such a Pod": {
			member: func(w *schedulertesting.PodWrapper) {
				w.PodAntiAffinityExists("colour", corev1.LabelHostname, schedulertesting.PodAntiAffinityWithRequiredReq)
			},
			before: none, after: nil,
		},
		"it is to be spread over domains with such Pods": {
			member: func(w *schedulertesting.PodWrapper) {
				// The other node has none, and no room.
				w.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule,
					&metav1.LabelSelector{MatchLabels: red}, nil, nil, nil, nil)
				w.Label("colour", "red")
			},
			before: red, after: none,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				running := makePod("running", onNode("node-0"))
				running.Labels = tc.before
				w := newWorld(t, all(makeNodes("node", 2, 2), running, makePod("full", onNode("node-1"), wholeNode),
					makeGroup("gang", 1), makeMembers("gang", 1, tc.member))...)
				w.start()
				w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				w.eventually("nothing is left to be planned", w.quiet)
				w.relabel("running", tc.after)
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 1 })
			})
		})
	}
}

// TestAPodThatIsMovedToAnotherGangMayHelpAnybody: it may give way now, or be less worth.
func TestAPodThatIsMovedToAnotherGangMayHelpAnybody(t *testing.T) {
	plain, moved, inOtherRole := makePod("runs", onNode("node-0")), makePod("runs", onNode("node-0"), inGroup("other")),
		makePod("runs", onNode("node-0"), inGroup("other"), inRole("ps"))
	tests := map[string]struct {
		before, after any
		want          bool
	}{
		"to a gang":                {plain, moved, true},
		"from a gang":              {moved, plain, true},
		"to another role":          {moved, inOtherRole, true},
		"nowhere":                  {moved, moved, false},
		"from what is not known":   {nil, moved, true},
		"from a Pod to none known": {moved, nil, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			group := makeGroup("gang", 1)
			b.SetGroup(group)
			b.SetPod(makePod("gang-0", inGroup("gang")))
			b.cycle()
			need := lacking(1)
			need.IgnoresLabels = true
			b.fail(gangName, group.UID, queue.Refusal{Message: "no room", Need: need}, time.Second, time.Second)
			b.time = b.time.Add(2 * time.Second)
			happened(b.Gangs, fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodLabel}, tc.before, tc.after)
			if _, got, _ := b.Next(); got != tc.want {
				t.Errorf("the gang is planned again: %v, want %v", got, tc.want)
			}
		})
	}
}
