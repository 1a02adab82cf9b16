// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// ring is the gang of Pods of Kueue's pod group "ring", and light one of the light form.
var (
	ring  = dialect.Key{Dialect: dialect.Rules, Namespace: testNamespace, Name: "kueue/ring"}
	light = dialect.Key{Dialect: dialect.SchedulerPlugins, Namespace: testNamespace, Name: "ring"}
)

// newRuledBench is a bench with rules on.
func newRuledBench() *bench {
	b := newBench()
	b.config.Links = &dialect.Links{}
	b.config.Links.TurnOnRule(configv1alpha1.RuleKueuePods)
	b.config.Links.TurnOnRule(configv1alpha1.RuleMinAvailable)
	return b
}

// queued is a Pod of Kueue's pod group "ring" that has a number of Pods.
func queued(name, total string, options ...podOption) *corev1.Pod {
	pod := makePod(name, options...)
	pod.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": "ring"}
	pod.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": total}
	return pod
}

func gated(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"kueue.x-k8s.io/admission"}) }

// TestAGangWithoutAPodGroupIsWhole: it has its cycle when all are there and have no gates.
func TestAGangWithoutAPodGroupIsWhole(t *testing.T) {
	b := newRuledBench()
	b.add(queued("a", "2", gated), queued("b", "2", gated))
	if b.isNext(ring) {
		t.Error("it is next, and all its Pods are gated")
	}
	b.add(queued("a", "2"))
	b.time = b.time.Add(time.Minute)
	if b.isNext(ring) {
		t.Error("it is next, and one of its Pods is gated")
	}
	if told := b.toldWhy(ring); told != "1 of at least 2 members exist" {
		t.Errorf("it is told %v", told)
	}
	b.add(queued("b", "2"))
	if view := b.cycle(); view.Key != ring || len(view.Waiting) != 2 {
		t.Errorf("the cycle is that of %v with %d Pods, want both of %v", view.Key, len(view.Waiting), ring)
	}
	gang, _ := b.Look(ring)
	if gang.Member == nil || gang.Member.Name != "a" {
		t.Errorf("events are told of %v, want the first of the Pods", gang.Member)
	}
	if !b.assumeAll(ring, map[types.UID]string{"uid-a": "n", "uid-b": "n"}) {
		t.Error("it is not placed")
	}
	b.add(queued("a", "2", onNode("n")), queued("b", "2", onNode("n")))
	if told := b.toldWhy(ring); told != "at least minMember members are bound" {
		t.Errorf("it is told %v", told)
	}
}

// TestAGangThatKueueEvictsHasNothing: its Pods are deleted.
func TestAGangThatKueueEvictsHasNothing(t *testing.T) {
	b := newRuledBench()
	a, c := queued("a", "2"), queued("c", "2")
	b.add(a, c)
	if !b.Waits(ring, dialect.ImpliedUID, 0) {
		t.Error("no room would be kept for it")
	}
	b.DeletePod(a)
	if b.Waits(ring, dialect.ImpliedUID, 0) || b.isNext(ring) {
		t.Error("room is kept for what is left of it")
	}
	b.DeletePod(c)
	if b.gangs[ring] != nil {
		t.Error("it is remembered for ever")
	}
}

// TestTheHighestMinimumCounts, and the members are told once that they differ.
func TestTheHighestMinimumCounts(t *testing.T) {
	b := newRuledBench()
	a, c := queued("a", "2"), queued("c", "3")
	minimum := func() int32 {
		g := b.gangs[ring]
		if g == nil || g.group == nil {
			return 0
		}
		return g.group.Spec.Minimum.Members
	}
	b.add(a)
	gang, _ := b.Look(ring)
	if got := minimum(); got != 2 || len(gang.Warnings()) > 0 {
		t.Errorf("the minimum is %d, want 2; it is told %v", got, gang.Warnings())
	}
	b.add(c)
	gang, _ = b.Look(ring)
	if got := minimum(); got != 3 || !strings.Contains(fmt.Sprint(gang.Warnings()), "from 2 to 3") {
		t.Errorf("the minimum is %d, want 3; it is told %v", got, gang.Warnings())
	}
	gang.Record.Warned(gang.Warnings())
	b.Remember(gang.Group, gang.Record)
	if gang, _ = b.Look(ring); len(gang.Warnings()) > 0 {
		t.Errorf("it is told again %v", gang.Warnings())
	}
	b.add(queued("c", "2"))
	if got := minimum(); got != 2 || !b.isNext(ring) {
		t.Errorf("the minimum is %d, want 2 when nobody asks for more; it is next: %t", got, b.isNext(ring))
	}
	b.DeletePod(a)
	b.DeletePod(c)
	if got := minimum(); got != 0 {
		t.Errorf("the minimum is %d when nobody is left", got)
	}
}

// TestTheOldestMemberSaysHowOldTheGangIs, for its place in the queue, also when it is gone.
func TestTheOldestMemberSaysHowOldTheGangIs(t *testing.T) {
	b := newRuledBench()
	born := func(pod *corev1.Pod, second int) *corev1.Pod {
		pod.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
		return pod
	}
	old := born(queued("old", "2"), 1)
	b.add(born(queued("young", "2"), 3), old, born(queued("middle", "2"), 2))
	for _, when := range []string{"it is there", "it is gone"} {
		if got := b.gangs[ring].rank().Created; got.Second() != 1 {
			t.Errorf("the gang is of second %d when %s, want 1", got.Second(), when)
		}
		b.DeletePod(old)
	}
}

// TestAPodGroupCountsForMoreThanWhatPodsSay, of the light form, as long as it is there.
func TestAPodGroupCountsForMoreThanWhatPodsSay(t *testing.T) {
	b := newRuledBench()
	member := func(name string) *corev1.Pod {
		pod := makePod(name)
		pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
		return pod
	}
	group := &dialect.Group{Key: light, UID: "object", Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 3}}}
	b.add(member("a"), member("b"))
	if !b.isNext(light) {
		t.Error("it is not next, and there are as many as they say")
	}
	b.Gangs.SetGroup(group)
	if b.isNext(light) {
		t.Error("it is next, and its PodGroup asks for more")
	}
	b.add(member("c"))
	if !b.isNext(light) {
		t.Error("it is not next, and there are as many as its PodGroup says")
	}
	gang, _ := b.Look(light)
	if len(gang.Minima) > 0 || gang.Group.Object().Kind != "PodGroup" {
		t.Errorf("it is told by a %s, with the minima %v", gang.Group.Object().Kind, gang.Minima)
	}
	b.Gangs.DeleteGroup(light, "object")
	if b.isNext(light) {
		t.Error("it is next when its PodGroup has just gone, and may be made anew")
	}
	_, _, again := b.Next()
	if want := b.time.Add(impliedGrace); !again.Equal(want) {
		t.Errorf("it is looked again at %v, want %v", again, want)
	}
	b.time = again
	b.Next()
	if got := b.gangs[light].group; got == nil || got.Spec.Minimum.Members != 2 || !b.isNext(light) {
		t.Errorf("its PodGroup is gone, and it has %v, next: %t", got, b.isNext(light))
	}
}

// TestPodsSayNothingOfAGangWhosePodGroupCantBeSeen: it may ask for more than they do.
func TestPodsSayNothingOfAGangWhosePodGroupCantBeSeen(t *testing.T) {
	member := func(name string) *corev1.Pod {
		pod := makePod(name)
		pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
		return pod
	}
	for name, tc := range map[string]struct {
		on     bool // the dialect is
		absent bool // the kind is not there
		before bool // the Pods come before it is known that the groups can't be seen
		want   bool // they are placed together
	}{
		"the Pods come after it is known":                {on: true},
		"the Pods come before it is known":               {on: true, before: true},
		"the dialect is off":                             {want: true},
		"the kind is not there, so there is no PodGroup": {on: true, absent: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlindBench()
			b.config.Links = &dialect.Links{}
			b.config.Links.TurnOnRule(configv1alpha1.RuleMinAvailable)
			if tc.on {
				b.config.Links.TurnOn(dialect.SchedulerPlugins)
			}
			if tc.before {
				b.add(member("a"), member("b"))
			}
			why := "they may not be listed"
			if tc.absent {
				why = dialect.SchedulerPlugins.NotServed()
			}
			b.SetUnread(dialect.SchedulerPlugins, "", why)
			b.add(member("a"), member("b"))
			b.SetSynced()
			if next := b.isNext(light); next != tc.want {
				t.Errorf("they have a cycle: %t, want %t", next, tc.want)
			}
			b.SetUnread(dialect.SchedulerPlugins, "", "")
			if !b.isNext(light) {
				t.Error("they have no cycle when it is known that there is no PodGroup")
			}
		})
	}
}
