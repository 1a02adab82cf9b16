// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

var errRefused = apierrors.NewForbidden(corev1.Resource("pods"), "binding", errors.New("not this gang"))

// TestAGangWhoseBindingsAreRefusedBacksOff: it is placed again and again, and nobody
// gets tired of refusing. Each round of bindings waits for twice as long as the one
// before, and the gang is told why.
func TestAGangWhoseBindingsAreRefusedBacksOff(t *testing.T) {
	tests := map[string]struct {
		minimum  int32
		refused  string // the prefix of the names of the members that are refused
		perRound int
	}{
		"all members are refused":                    {minimum: 8, refused: "gang-", perRound: 8},
		"one member of eight is refused":             {minimum: 8, refused: "gang-3", perRound: 1},
		"a member above the minimum is refused":      {minimum: 7, refused: "gang-3", perRound: 1},
		"all are refused, of which a part is needed": {minimum: 2, refused: "gang-", perRound: 8},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, all(makeNodes("node", 2, 4), makeGroup("gang", tc.minimum), makeMembers("gang", 8))...)
			w.args = `{"initialBackoff":"100ms","maxBackoff":"400ms"}`
			const rounds = 5
			var refusals []time.Time
			w.bindError = func(pod string) error {
				if !strings.HasPrefix(pod, tc.refused) {
					return nil
				}
				refusals = append(refusals, time.Now())
				return errRefused
			}
			w.start()
			w.eventually("there were some rounds of bindings", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(refusals) > (rounds-1)*tc.perRound
			})
			w.mu.Lock()
			took := refusals[(rounds-1)*tc.perRound].Sub(refusals[0])
			w.mu.Unlock()
			// From the first round to the fifth: 0.1 s, 0.2 s, and 0.4 s twice, but for
			// the time from the refusal to the end of the first round.
			if least := time.Second; took < least {
				t.Errorf("%d rounds of bindings took %v, want at least %v", rounds, took, least)
			}
			if tc.minimum == 8 {
				got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonBindingFailed)
				for _, part := range []string{"could not be bound to node-", "not this gang"} {
					if !strings.Contains(got.Message, part) {
						t.Errorf("message %q, want one with %q", got.Message, part)
					}
				}
			}

			w.mu.Lock()
			w.bindError = nil
			w.mu.Unlock()
			w.eventually("all members are bound once they are not refused any more", func() bool { return w.placed("gang") == 8 })
			w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		})
	}
}

// binding is a gang of two whose members are being bound, and how that ends.
type binding struct {
	*bench
	group *schedulingv1alpha1.PodGroup
	pods  []*corev1.Pod
}

func newBinding() *binding {
	b := &binding{bench: newBench(), group: makeGroup("gang", 2),
		pods: []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang"))}}
	b.setGroup(b.group)
	b.add(b.pods...)
	return b
}

// place assumes the members that wait.
func (b *binding) place() {
	nodes := make(map[types.UID]string)
	for _, pod := range b.pods {
		nodes[pod.UID] = "node-0"
	}
	b.assumeAll(nodes)
}

func (b *binding) refuse(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.unassume(failedBinding{pod: pod, message: "refused", terms: line.Terms{Initial: time.Second, Longest: 4 * time.Second}})
	}
}

func (b *binding) bind(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.setPod(makePod(pod.Name, inGroup("gang"), onNode("node-0")))
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
	b.setGroup(makeGroup("low", 1))
	b.add(makePod("low-0", inGroup("low"), ofPriority(-1)))
	if view := b.turn(); view.Key.Name != "low" {
		t.Errorf("the turn of a gang behind goes to %q", view.Key.Name)
	}
	b.assume(&gangView{Gang: place.Gang{Key: gangNamed("low"), Group: b.gangs[gangNamed("low")].group}}, map[types.UID]string{"uid-low-0": "node-0"})
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
