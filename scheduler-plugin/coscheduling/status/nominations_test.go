// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		"none when members may not be scheduled": {
			gang: gangOf(complete, unready), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: nominationPeriod,
		},
		"none when its group is gone": {
			gang: gangOf(groupless), pod: nominatedPod("a", "", unschedulable), wantChange: true, wantAfter: groupGrace,
		},
		"none when its group is gone, and it knows that": {
			gang: gangOf(groupless), pod: nominatedPod("a", "", ReasonNoGroup), wantChange: true, wantAfter: nominationPeriod,
		},
		"the same while its gang is about to be planned":           {gang: gangOf(complete), pod: nominatedPod("a", "", unschedulable)},
		"what others say, while its gang lacks members":            {gang: gangOf(), pod: nominatedPod("a", "")},
		"the same while a member is replaced and its room is kept": {gang: gangOf(), pod: nominatedPod("a", "a", unschedulable)},
		"none if it never was":                                     {gang: gangOf(complete, refused), pod: nominatedPod("", "", unschedulable)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.gang.Record.Renominated = start
			tc.gang.Pods = []Pod{tc.pod}
			node, changes := tc.gang.nomination(tc.pod)
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

// nominate has the Pods of the gang be nominated for nodes from now on, by name.
func (r *reporting) nominate(nodes map[string]string) {
	r.mu.Lock()
	for i := range r.gang.Pods {
		r.gang.Pods[i].Nominee = nodes[r.gang.Pods[i].Pod.Name]
	}
	r.mu.Unlock()
	r.Report(r.gang.Key, 0)
}

// see has the gang know its Pods as they are now.
func (r *reporting) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.gang.Pods {
		object, err := r.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", r.gang.Pods[i].Pod.Name)
		if err == nil {
			r.gang.Pods[i].Pod = object.(*corev1.Pod)
		}
	}
}

// nominations are for which nodes the Pods are nominated, by name.
func (r *reporting) nominations() map[string]string {
	r.see()
	nodes := make(map[string]string)
	for _, p := range r.gang.Pods {
		nodes[p.Pod.Name] = p.Pod.Status.NominatedNodeName
	}
	return nodes
}

// TestRoomThatComesAndGoesIsWrittenNowAndThen: every second the room of a gang is another one,
// or none.
func TestRoomThatComesAndGoesIsWrittenNowAndThen(t *testing.T) {
	report(t, gangOf(complete, refused), nil, func(t *testing.T, r *reporting) {
		r.rest(time.Second)
		before := r.patches()
		nodes := []map[string]string{{"a": "one", "b": "two"}, {}, {"a": "two", "b": "one"}, {}}
		for second := range 60 {
			r.nominate(nodes[second%len(nodes)])
			r.rest(time.Second)
			r.see()
		}
		// Two Pods, six times ten seconds, and two writes in each; one more as they begin.
		if n := r.patches() - before; n > 2*(6*2+1) {
			t.Errorf("nominations were written %d times in a minute", n)
		}
		r.nominate(nil)
		r.rest(nominationPeriod)
		if diff := cmp.Diff(map[string]string{"a": "", "b": ""}, r.nominations()); diff != "" {
			t.Errorf("nominations in the end (-want, +got):\n%s", diff)
		}
	}, "a", "b")
}
