// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nominatedPod makes a Pod that was told for these reasons why it waits, and is nominated for a
// node; it is to be so for another one. Empty is none.
func nominatedPod(now, next string, told ...string) Pod {
	p := waitingPod(told...)
	p.Pod.Status.NominatedNodeName, p.Nominee = now, next
	return p
}

// TestForWhichNodeAPodIsNominated, and when. The nominations of its gang were changed last at
// the start.
func TestForWhichNodeAPodIsNominated(t *testing.T) {
	const unschedulable = corev1.PodReasonUnschedulable
	tests := map[string]struct {
		gang Gang
		pod  Pod
		// wantChange says that the nomination changes, after so long, to that node.
		wantChange bool
		want       string
		wantAfter  time.Duration
	}{
		"the one where room is made for it, at once": {
			gang: gangOf(complete, refused), pod: nominatedPod("", "a", unschedulable), wantChange: true, want: "a",
		},
		"the same when it is told that there is no room": {
			gang: gangOf(complete, refused), pod: nominatedPod("", "a"), wantChange: true, want: "a",
		},
		"the one where it is nominated, once": {gang: gangOf(complete, refused), pod: nominatedPod("a", "a", unschedulable)},
		"another one, a while later": {
			gang: gangOf(complete, refused), pod: nominatedPod("a", "b", unschedulable), wantChange: true, want: "b", wantAfter: nominationPeriod,
		},
		"none, a while later, when no room is kept": {
			gang: gangOf(complete, refused), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when members are missing": {
			gang: gangOf(), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when members are missing and its binding has failed": {
			gang: gangOf(), pod: nominatedPod("a", "", corev1.PodReasonSchedulerError), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when members are missing, and it knows that": {
			gang: gangOf(), pod: nominatedPod("a", "", ReasonIncomplete), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when members may not be scheduled": {
			gang: gangOf(complete, unready), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when its group is gone": {
			gang: gangOf(groupless), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: groupGrace,
		},
		"none when its group is gone, and it knows that": {
			gang: gangOf(groupless), pod: nominatedPod("a", "", ReasonNoGroup), wantChange: true, wantAfter: nominationPeriod,
		},
		"the same while its gang is about to be planned":            {gang: gangOf(complete), pod: nominatedPod("a", "", unschedulable)},
		"what others say, while its gang lacks members":             {gang: gangOf(), pod: nominatedPod("a", "")},
		"the same while a member is replaced and its room is kept":  {gang: gangOf(), pod: nominatedPod("a", "a", unschedulable)},
		"none while its gang lacks members, if it was told nothing": {gang: gangOf(), pod: nominatedPod("", "a")},
		"none before its gang is told that there is no room":        {gang: gangOf(complete), pod: nominatedPod("", "a")},
		"none if it never was":                                      {gang: gangOf(complete, refused), pod: nominatedPod("", "", unschedulable)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.gang.Record.Renominated = start
			tc.gang.Pods = []Pod{tc.pod}
			node, changes := tc.gang.Nomination(tc.pod)
			if changes != tc.wantChange || node != tc.want {
				t.Errorf("it changes to %q: %t; want %q: %t", node, changes, tc.want, tc.wantChange)
			}
			if !tc.wantChange {
				if due, again := tc.gang.Unmarked(start.Add(time.Hour)); len(due) > 0 || again != 0 {
					t.Errorf("something is written, or in %v", again)
				}
				return
			}
			if tc.wantAfter > 0 {
				if due, again := tc.gang.Unmarked(start.Add(tc.wantAfter - time.Second)); len(due) > 0 || again != time.Second {
					t.Errorf("it is written a second too early, or in %v", again)
				}
			}
			if due, again := tc.gang.Unmarked(start.Add(tc.wantAfter)); len(due) != 1 || again != 0 {
				t.Errorf("it is not written after %v, but in %v", tc.wantAfter, again)
			}
		})
	}
}
