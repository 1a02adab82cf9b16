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

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
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
			inBubble(t, func(t *testing.T) {
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
		})
	}
}
