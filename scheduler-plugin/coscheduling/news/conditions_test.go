// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// start is when tests begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// gangOf makes a gang that needs two members, and has one.
func gangOf(change ...func(*Gang)) Gang {
	g := Gang{
		Key: dialect.Key{Namespace: "ns", Name: "gang"},
		Group: &dialect.Group{
			Key: dialect.Key{Namespace: "ns", Name: "gang"}, UID: "uid-of-gang", Generation: 5,
			Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 2}},
		},
		Waiting: podgroup.Tally{Total: 1},
	}
	for _, c := range change {
		c(&g)
	}
	return g
}

func groupless(g *Gang)  { g.Group, g.Missing = nil, start }
func complete(g *Gang)   { g.Waiting.Total = 2 }
func refused(g *Gang)    { g.Refusal = &queue.Refusal{Message: "no room"} }
func unready(g *Gang)    { g.Refusal = &queue.Refusal{Message: "gated by a plugin", Unready: true} }
func unbound(g *Gang)    { g.Unbound = "a-0 could not be bound" }
func placed(g *Gang)     { g.Waiting, g.Placed = podgroup.Tally{}, podgroup.Tally{Total: 2} }
func bound(g *Gang)      { placed(g); g.Bound = g.Placed }
func preempts(g *Gang)   { g.Kept = Preempting }
func nobody(g *Gang)     { g.Waiting = podgroup.Tally{} }
func wasBound(g *Gang)   { g.Group.Conditions = said(schedulingv1alpha1.ReasonScheduled) }
func lostMember(g *Gang) { g.Group.Conditions = said(schedulingv1alpha1.ReasonPodDeleted) }

// said are conditions of an hour ago.
func said(reason string) []schedulingv1alpha1.PodGroupCondition {
	v := verdict{scheduled: reason == schedulingv1alpha1.ReasonScheduled, reason: reason, message: "said before"}
	return v.conditions(nil, "first", metav1.NewTime(start.Add(-time.Hour)), 1)
}

// TestWhatTheConditionsSay, and for what the metric of waiting gangs says that a gang
// waits.
func TestWhatTheConditionsSay(t *testing.T) {
	tests := map[string]struct {
		gang          Gang
		wantScheduled bool
		// wantReason is empty if nothing is said.
		wantReason, wantMessage string
		wantWaitsFor            string
	}{
		"nothing while the group is missing": {gang: gangOf(groupless, complete, refused)},
		"that members are missing": {
			gang: gangOf(), wantReason: "NotEnoughTasks", wantMessage: "1 of at least 2 members exist", wantWaitsFor: "NotEnoughTasks",
		},
		"that all members are missing": {
			gang: gangOf(nobody), wantReason: "NotEnoughTasks", wantMessage: "0 of at least 2 members exist",
		},
		"that members name a scheduler which is not served": {
			gang: gangOf(nobody, func(g *Gang) { g.Unserved = map[string]int{"lockstep-sheduler": 2} }), wantReason: "NotEnoughTasks",
			wantMessage: "0 of at least 2 members exist; 2 more wait for the scheduler lockstep-sheduler, which is not served here",
		},
		"which roles are missing": {
			gang: gangOf(complete, func(g *Gang) {
				g.Group.Spec.Minimum.Roles = map[string]int32{"worker": 1, "ps": 2}
				g.Waiting.Roles, g.Placed.Roles = map[string]int32{"worker": 1}, map[string]int32{"ps": 1}
			}),
			wantReason: "NotEnoughTasks", wantMessage: "2 of at least 2 members exist, 1 of at least 2 in role ps", wantWaitsFor: "NotEnoughTasks",
		},
		"nothing while the gang is about to be planned": {gang: gangOf(complete)},
		"why there is no place": {
			gang: gangOf(complete, refused), wantReason: "NotEnoughResources", wantMessage: "no room", wantWaitsFor: "NotEnoughResources",
		},
		"why there is no place, while room is kept": {
			gang: gangOf(complete, refused, preempts), wantReason: "NotEnoughResources", wantMessage: "no room", wantWaitsFor: Preempting,
		},
		"that members are missing of a gang whose victims end": {
			gang: gangOf(refused, preempts), wantReason: "NotEnoughTasks", wantMessage: "1 of at least 2 members exist", wantWaitsFor: "NotEnoughTasks",
		},
		"that members may not be scheduled yet": {
			gang: gangOf(complete, unready), wantReason: "NotEnoughTasks", wantMessage: "gated by a plugin", wantWaitsFor: "NotEnoughTasks",
		},
		"that members could not be bound": {
			gang: gangOf(complete, unbound), wantReason: "BindingFailed", wantMessage: "a-0 could not be bound", wantWaitsFor: "BindingFailed",
		},
		"why there is no place now, even if members could not be bound before": {
			gang: gangOf(complete, unbound, refused), wantReason: "NotEnoughResources", wantMessage: "no room", wantWaitsFor: "NotEnoughResources",
		},
		"nothing while the minimum is being bound": {gang: gangOf(placed)},
		"that the minimum is bound": {
			gang: gangOf(bound), wantScheduled: true, wantReason: "Scheduled", wantMessage: "at least minMember members are bound",
		},
		"the same if there is no place for members above the minimum": {
			gang: gangOf(bound, complete, refused, func(g *Gang) { g.Group.Conditions = nil }), wantScheduled: true,
			wantReason: "Scheduled", wantMessage: "at least minMember members are bound", wantWaitsFor: "NotEnoughResources",
		},
		"nothing while the members of a gang that ran end": {gang: gangOf(wasBound, nobody)},
		"that a member was deleted": {
			gang: gangOf(wasBound), wantReason: "PodDeleted", wantMessage: "1 of at least 2 members exist", wantWaitsFor: "NotEnoughTasks",
		},
		"that members have failed, if more have than were deleted": {
			gang:       gangOf(wasBound, complete, refused, func(g *Gang) { g.Failed, g.Deleted = 2, 1 }),
			wantReason: "PodFailed", wantMessage: "no room", wantWaitsFor: "NotEnoughResources",
		},
		"still that a member was deleted, after a restart of the scheduler": {
			gang: gangOf(lostMember, complete, refused), wantReason: "PodDeleted", wantMessage: "no room", wantWaitsFor: "NotEnoughResources",
		},
		"by what was written last, rather than by what the watch has shown": {
			gang:       gangOf(wasBound, func(g *Gang) { g.Record.Conditions = said(schedulingv1alpha1.ReasonNotEnoughTasks) }),
			wantReason: "NotEnoughTasks", wantMessage: "1 of at least 2 members exist", wantWaitsFor: "NotEnoughTasks",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			conditions, again := tc.gang.News(start, "new")
			if again != 0 {
				t.Errorf("there will be news in %v", again)
			}
			if got := tc.gang.WaitsFor(); got != tc.wantWaitsFor {
				t.Errorf("the gang waits for %q, want %q", got, tc.wantWaitsFor)
			}
			if tc.wantReason == "" {
				if conditions != nil {
					t.Errorf("conditions %v, want none", conditions)
				}
				return
			}
			for kind, want := range map[string]bool{
				schedulingv1alpha1.ConditionScheduled: tc.wantScheduled, schedulingv1alpha1.ConditionUnschedulable: !tc.wantScheduled,
			} {
				c := ConditionOf(conditions, kind)
				if c == nil || (c.Status == metav1.ConditionTrue) != want || c.Reason != tc.wantReason || c.Message != tc.wantMessage {
					t.Errorf("%s: %+v; want %t, %s: %s", kind, c, want, tc.wantReason, tc.wantMessage)
				}
			}
		})
	}
}

// TestWhatChangesInConditions that were there.
func TestWhatChangesInConditions(t *testing.T) {
	now := metav1.NewTime(start)
	earlier := metav1.NewTime(start.Add(-time.Hour))
	tests := map[string]struct {
		before []schedulingv1alpha1.PodGroupCondition
		gang   Gang
		// wantNone says that there is nothing to write.
		wantNone bool
		wantID   string
		wantTime metav1.Time
	}{
		"the first conditions": {gang: gangOf(), wantID: "new", wantTime: now},
		"the same again is nothing to write": {
			before: verdict{reason: "NotEnoughResources", message: "no room"}.conditions(nil, "first", earlier, 1),
			gang:   gangOf(complete, refused), wantNone: true,
		},
		"another message is the same transition": {
			before: said(schedulingv1alpha1.ReasonNotEnoughResources),
			gang:   gangOf(complete, refused), wantID: "first", wantTime: earlier,
		},
		"another reason is the same transition too": {
			before: said(schedulingv1alpha1.ReasonNotEnoughResources),
			gang:   gangOf(), wantID: "first", wantTime: earlier,
		},
		"another status is a new transition": {
			before: said(schedulingv1alpha1.ReasonNotEnoughResources),
			gang:   gangOf(bound), wantID: "new", wantTime: now,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.gang.Group.Conditions = tc.before
			conditions, _ := tc.gang.News(start, "new")
			if tc.wantNone {
				if conditions != nil {
					t.Errorf("conditions %v, want none", conditions)
				}
				return
			}
			for _, c := range conditions {
				got := schedulingv1alpha1.PodGroupCondition{TransitionID: c.TransitionID, LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration}
				want := schedulingv1alpha1.PodGroupCondition{TransitionID: tc.wantID, LastTransitionTime: tc.wantTime, ObservedGeneration: 5}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("condition %s (-want, +got):\n%s", c.Type, diff)
				}
			}
		})
	}
}

// TestMessageIsWrittenAtLeisure: an amount that changes with each Pod that ends
// is not a write each time. Another reason is one at once.
func TestMessageIsWrittenAtLeisure(t *testing.T) {
	g := gangOf(complete, refused)
	g.Record.Conditions, _ = g.News(start, "id")
	g.Record.At = start
	g.Refusal = &queue.Refusal{Message: "less room"}
	if conditions, again := g.News(start.Add(time.Second), "id"); conditions != nil || again != messageInterval-time.Second {
		t.Errorf("write %v now or again in %v, want nothing before %v", conditions, again, messageInterval-time.Second)
	}
	if conditions, _ := g.News(start.Add(messageInterval), "id"); len(conditions) == 0 || conditions[0].Message != "less room" {
		t.Errorf("conditions %v, want the new message", conditions)
	}
	g.Refusal, g.Unbound = nil, "refused by a webhook"
	if conditions, _ := g.News(start.Add(time.Second), "id"); len(conditions) == 0 || conditions[0].Message != g.Unbound {
		t.Errorf("conditions %v, want the new reason at once", conditions)
	}
}

// TestNewGroupLacksNoMembersYet: that a group without members lacks them is told
// only once they should have come.
func TestNewGroupLacksNoMembersYet(t *testing.T) {
	g := gangOf()
	g.Group.Created = start
	if conditions, again := g.News(start, "id"); conditions != nil || again != membersGrace {
		t.Errorf("write %v now or again in %v, want nothing before %v", conditions, again, membersGrace)
	}
	if conditions, _ := g.News(start.Add(membersGrace), "id"); len(conditions) == 0 || conditions[0].Reason != schedulingv1alpha1.ReasonNotEnoughTasks {
		t.Errorf("conditions %v, want the reason %s", conditions, schedulingv1alpha1.ReasonNotEnoughTasks)
	}
}

// TestSinceWhenAGangFindsNoRoom, as a scheduler before this one has said.
func TestSinceWhenAGangFindsNoRoom(t *testing.T) {
	tests := map[string]struct {
		conditions []schedulingv1alpha1.PodGroupCondition
		want       time.Time
	}{
		"there are no conditions": {},
		"it lacks members":        {conditions: said(schedulingv1alpha1.ReasonNotEnoughTasks)},
		"it has its place":        {conditions: said(schedulingv1alpha1.ReasonScheduled)},
		"it has lost members":     {conditions: said(schedulingv1alpha1.ReasonPodDeleted), want: start.Add(-time.Hour)},
		"members have failed":     {conditions: said(schedulingv1alpha1.ReasonPodFailed), want: start.Add(-time.Hour)},
		"it finds no room":        {conditions: said(schedulingv1alpha1.ReasonNotEnoughResources), want: start.Add(-time.Hour)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NoRoomSince(tc.conditions); !got.Equal(tc.want) {
				t.Errorf("since %v, want %v", got, tc.want)
			}
		})
	}
}

// fight has somebody else write conditions whenever a scheduler has, for some time, and counts what that writes.
func fight(g *Gang, long time.Duration, theirs []schedulingv1alpha1.PodGroupCondition) (writes int) {
	version := 100
	for now := start; now.Before(start.Add(long)); now = now.Add(time.Second) {
		if conditions, _ := g.News(now, "id"); conditions != nil {
			writes++
			version++
			g.Record.Wrote(conditions, strconv.Itoa(version), now)
			g.Group.Conditions = conditions
			if theirs != nil {
				g.Group.Conditions = theirs
				version++
			}
			g.Group.ResourceVersion = strconv.Itoa(version)
		}
	}
	return writes
}

// TestWhatSomebodyElseHasSaidIsPutRight: a leader before this one may be late. It is when nothing else is to be said, too.
func TestWhatSomebodyElseHasSaidIsPutRight(t *testing.T) {
	for name, then := range map[string]func(*Gang){
		"while the gang runs":      func(*Gang) {},
		"while it comes to an end": func(g *Gang) { g.Bound, g.Placed = podgroup.Tally{Total: 1}, podgroup.Tally{Total: 1} },
	} {
		t.Run(name, func(t *testing.T) {
			g := gangOf(bound)
			g.Group.ResourceVersion = "1"
			conditions, _ := g.News(start, "id")
			g.Record.Wrote(conditions, "5", start)
			then(&g)
			late := said(schedulingv1alpha1.ReasonNotEnoughResources)
			g.Group.Conditions = late
			if got, _ := g.News(start.Add(time.Hour), "id"); got != nil {
				t.Errorf("%v is written, and the watch has not shown yet what was written last", got)
			}
			g.Group.ResourceVersion = "6"
			if got, again := g.News(start, "id"); got != nil || again != minRepair {
				t.Errorf("%v is written at once, or again in %v, want in %v", got, again, minRepair)
			}
			got, _ := g.News(start.Add(minRepair), "id")
			if !Same(got, conditions) {
				t.Errorf("%v is written, want what was said before, %v", got, conditions)
			}
		})
	}
}

// TestTwoSchedulersThatFightDoNotWriteWithoutBound: once each is enough where nobody fights.
func TestTwoSchedulersThatFightDoNotWriteWithoutBound(t *testing.T) {
	g := gangOf(bound)
	g.Group.ResourceVersion = "1"
	if n := fight(&g, time.Hour, nil); n != 1 {
		t.Errorf("%d writes where nobody else writes, want 1", n)
	}
	g = gangOf(bound)
	g.Group.ResourceVersion = "1"
	if n := fight(&g, time.Hour, said(schedulingv1alpha1.ReasonNotEnoughResources)); n < 5 || n > 20 {
		t.Errorf("%d writes in an hour against somebody who always writes something else, want 5 to 20", n)
	}
}

// TestALongBackOffIsTold with its end, in the condition that has its cause. A short one is over before anybody reads it.
func TestALongBackOffIsTold(t *testing.T) {
	for left, want := range map[time.Duration]string{
		time.Hour:   "no room; it is tried again at " + start.Add(time.Hour).UTC().Format(time.RFC3339) + ", or when its group or its Pods change",
		time.Minute: "no room", -time.Hour: "no room",
	} {
		g := gangOf(complete, refused)
		g.BackOff = start.Add(left)
		conditions, _ := g.News(start, "id")
		if len(conditions) == 0 || conditions[0].Message != want {
			t.Errorf("%v before its end: %v, want %q", left, conditions, want)
		}
	}
}
