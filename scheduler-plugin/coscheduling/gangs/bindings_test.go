// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// binding is a gang of two whose members are being bound, and how that ends.
type binding struct {
	*bench
	group *schedulingv1alpha1.PodGroup
	pods  []*corev1.Pod
}

func newBinding() *binding {
	b := &binding{bench: newBench(), group: makeGroup("gang", 2),
		pods: []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang"))}}
	b.SetGroup(b.group)
	b.add(b.pods...)
	return b
}

// place assumes the members that wait.
func (b *binding) place() {
	nodes := make(map[types.UID]string)
	for _, pod := range b.pods {
		nodes[pod.UID] = "node-0"
	}
	b.assumeAll(gangName, nodes)
}

func (b *binding) refuse(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.Unassume(FailedBinding{Pod: pod, Message: "refused", Terms: queue.Terms{Initial: time.Second, Longest: 4 * time.Second}})
	}
}

func (b *binding) bind(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.SetPod(makePod(pod.Name, inGroup("gang"), onNode("node-0")))
	}
}

// wantBackoff checks that the gang is due after want and not before, and lets the time
// pass.
func (b *binding) wantBackoff(t *testing.T, when string, want time.Duration) {
	t.Helper()
	if want > 0 {
		b.time = b.time.Add(want - time.Millisecond)
		if b.isNext(gangName) {
			t.Errorf("%s the gang is due before %v", when, want)
		}
		b.time = b.time.Add(time.Millisecond)
	}
	if !b.isNext(gangName) {
		t.Errorf("%s the gang is not due after %v", when, want)
	}
}

// TestNothingShortensTheBackOffOfAGangThatCannotBeBound: room is not what it lacks.
func TestNothingShortensTheBackOffOfAGangThatCannotBeBound(t *testing.T) {
	b := newBinding()
	b.place()
	b.refuse(b.pods...)
	b.somethingHappens()
	b.add(makePod("c", inGroup("gang")))
	if b.isNext(gangName) {
		t.Error("an event and a new member have the gang planned")
	}
	b.SetGroup(makeGroup("low", 1))
	b.add(makePod("low-0", inGroup("low"), ofPriority(-1)))
	if view := b.cycle(); view.Key.Name != "low" {
		t.Errorf("the cycle of a gang behind goes to %q", view.Key.Name)
	}
	b.assumeAll(gangNamed("low"), map[types.UID]string{"uid-low-0": "node-0"})
	b.wantBackoff(t, "after the first failure", time.Second)
}

// TestTheBackOffOfBindingsIsForgottenWithTheMinimum: the members of one placement that
// fail are one failure, and the failures add up until all are bound.
func TestTheBackOffOfBindingsIsForgottenWithTheMinimum(t *testing.T) {
	b := newBinding()
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		b.place()
		b.refuse(b.pods...)
		b.wantBackoff(t, "after another failure", want)
	}
	b.place()
	b.bind(b.pods[0])
	b.refuse(b.pods[1])
	b.wantBackoff(t, "with a part of the minimum bound", 4*time.Second)
	b.place()
	b.bind(b.pods[1])

	surplus := makePod("c", inGroup("gang"))
	b.pods = append(b.pods, surplus)
	b.add(surplus)
	b.wantBackoff(t, "once the minimum was bound", 0)
	b.place()
	b.refuse(surplus)
	b.wantBackoff(t, "after the first failure since", time.Second)
	b.place()
	b.refuse(surplus)
	b.wantBackoff(t, "after the second failure of a member above the minimum", 2*time.Second)
}
