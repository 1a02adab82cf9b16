// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// waitingPod makes a Pod that waits since the start and was told for these reasons.
func waitingPod(told ...string) Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid-of-pod"}}
	for _, reason := range told {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason})
	}
	return Pod{Pod: pod, Since: start}
}

func stranger(told ...string) Pod {
	p := waitingPod(told...)
	p.Stranger = true
	return p
}

// owned gives the group an owner, without which there are no strangers.
func owned(g *Gang) {
	attempt := &metav1.ObjectMeta{Name: "fw-attempt", UID: "attempt"}
	g.Group.Owner = metav1.NewControllerRef(attempt, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

// TestWhatAPodThatWaitsIsTold, and when.
func TestWhatAPodThatWaitsIsTold(t *testing.T) {
	notServed := func(g *Gang) { groupless(g); g.Unread = g.Key.Dialect.NotServed() }
	tests := map[string]struct {
		gang Gang
		pod  Pod
		// wantReason is empty if the Pod is told nothing; it is told after so long.
		wantReason, wantMessage string
		wantEvent               bool
		wantAfter               time.Duration
	}{
		"nothing while members are missing":             {gang: gangOf(), pod: waitingPod()},
		"nothing while its gang is about to be planned": {gang: gangOf(complete), pod: waitingPod()},
		"nothing while members may not be scheduled": {
			gang: gangOf(complete, unready), pod: waitingPod(),
		},
		"nothing of room that its gang lacked before it lost a member": {gang: gangOf(refused), pod: waitingPod()},
		"at once that there is no room, as cluster autoscalers expect it": {
			gang: gangOf(complete, refused), pod: waitingPod(), wantEvent: true,
			wantReason: "Unschedulable", wantMessage: "there is no room for all of PodGroup gang; its conditions say what is missing",
		},
		"what a member above the minimum lacks": {
			gang: gangOf(bound, complete, refused), pod: waitingPod(), wantEvent: true,
			wantReason: "Unschedulable", wantMessage: "PodGroup gang has its minimum, and there is no room for this member: no room",
		},
		"nothing twice": {gang: gangOf(complete, refused), pod: waitingPod("Unschedulable")},
		"that there is no room, if something else was said before": {
			gang: gangOf(complete, refused), pod: waitingPod(ReasonNoGroup), wantEvent: true,
			wantReason: "Unschedulable", wantMessage: "there is no room for all of PodGroup gang; its conditions say what is missing",
		},
		"that its group does not exist": {
			gang: gangOf(groupless), pod: waitingPod(), wantAfter: 3 * time.Second, wantEvent: true,
			wantReason: "PodGroupNotFound", wantMessage: "there is no PodGroup gang in the namespace ns, and the Pod waits for it",
		},
		"that its group was deleted, some time later": {
			gang: gangOf(groupless, func(g *Gang) { g.Missing = start.Add(time.Minute) }), pod: waitingPod(),
			wantAfter: time.Minute + groupGrace, wantEvent: true,
			wantReason: "PodGroupNotFound", wantMessage: "there is no PodGroup gang in the namespace ns, and the Pod waits for it",
		},
		"that its group does not exist, not twice": {gang: gangOf(groupless), pod: waitingPod(ReasonNoGroup)},
		"that there are no groups": {
			gang: gangOf(notServed), pod: waitingPod(), wantAfter: groupGrace, wantEvent: true,
			wantReason: "PodGroupsNotServed", wantMessage: "the Pod waits for PodGroup gang, and the API server serves no PodGroups: " +
				"the CustomResourceDefinition podgroups.scheduling.lockstep.dev is missing",
		},
		"that its group has come, and lacks members": {
			gang: gangOf(), pod: waitingPod(ReasonNoGroup),
			wantReason: "PodGroupIncomplete", wantMessage: "PodGroup gang lacks members; its conditions say how many",
		},
		"that it has become a member, and others are missing": {
			gang: gangOf(), pod: waitingPod(ReasonNotAMember),
			wantReason: "PodGroupIncomplete", wantMessage: "PodGroup gang lacks members; its conditions say how many",
		},
		"that groups are served, and its own lacks members": {
			gang: gangOf(), pod: waitingPod(ReasonNotServed),
			wantReason: "PodGroupIncomplete", wantMessage: "PodGroup gang lacks members; its conditions say how many",
		},
		"that members are missing, not twice": {gang: gangOf(), pod: waitingPod(ReasonIncomplete)},
		"that it is no member": {
			gang: gangOf(owned, complete, refused), pod: stranger(), wantAfter: strangerGrace, wantEvent: true,
			wantReason: "NotAMemberOfPodGroup", wantMessage: "no member of PodGroup gang, whose members are the Pods controlled by ConfigMap fw-attempt: " +
				"without the label scheduling.lockstep.dev/pod-group the Pod is scheduled on its own",
		},
		"that it is no member, not twice": {gang: gangOf(owned), pod: stranger(ReasonNotAMember)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.gang.Pods = []Pod{tc.pod}
			if tc.wantReason == "" {
				if unmarked, again := tc.gang.Unmarked(start.Add(time.Hour)); len(unmarked) > 0 || again != 0 {
					t.Errorf("the Pod is told something, or in %v", again)
				}
				return
			}
			mark, ok := tc.gang.MarkOf(tc.pod)
			want := Mark{Reason: tc.wantReason, Message: tc.wantMessage, Event: tc.wantEvent, Due: mark.Due}
			if diff := cmp.Diff(want, mark); diff != "" || !ok {
				t.Errorf("the Pod is told something: %t (-want, +got):\n%s", ok, diff)
			}
			if tc.wantAfter > 0 {
				unmarked, again := tc.gang.Unmarked(start.Add(tc.wantAfter - time.Second))
				if len(unmarked) > 0 || again != time.Second {
					t.Errorf("the Pod is told a second too early, or in %v", again)
				}
			}
			if unmarked, again := tc.gang.Unmarked(start.Add(tc.wantAfter)); len(unmarked) != 1 || again != 0 {
				t.Errorf("the Pod is not told after %v, but in %v", tc.wantAfter, again)
			}
		})
	}
}

// TestPodsAreToldEachInItsTime: those whose time has come now, and the next one when it
// has.
func TestPodsAreToldEachInItsTime(t *testing.T) {
	g := gangOf(groupless)
	for uid, since := range map[types.UID]time.Duration{"first": 0, "second": 2 * time.Second, "third": 4 * time.Second} {
		p := waitingPod()
		p.Pod.UID, p.Since = uid, start.Add(since)
		g.Pods = append(g.Pods, p)
	}
	unmarked, again := g.Unmarked(start.Add(groupGrace + time.Second))
	if diff := cmp.Diff([]types.UID{"first"}, unmarked); diff != "" || again != time.Second {
		t.Errorf("the next one is told in %v, want in a second; told now are (-want, +got):\n%s", again, diff)
	}
}
