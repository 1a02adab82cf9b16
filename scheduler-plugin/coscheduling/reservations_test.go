// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// TestAnOwnReservationIsNoEvent: a gang that gives up its reservation is not planned again for
// that, or one that moves its reservation in each cycle would never rest.
func TestAnOwnReservationIsNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeGroup("gang", 1), makeMembers("gang", 1))...)
		stop := w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		stop()
		member, err := framework.NewPodInfo(makePod("gang-0", inGroup("gang")))
		if err != nil {
			t.Fatal(err)
		}
		w.engine().keeper.offer(t.Context(), room.New(room.Gang{Rank: queue.Rank{Key: gangNamed("gang")}}, room.Preemption, []*framework.PodInfo{member}, nil, time.Time{}))
		if w.known("gang").Ready {
			t.Error("the gang is to be planned again because of its own reservation")
		}
	})
}

// TestRoomOutlastsAMemberThatIsReplaced: while the victims end, a member that waits is made
// anew. What the first victim has left is not given to others.
func TestRoomOutlastsAMemberThatIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 1), makePod("a", onNode("node-0")), makePod("b", onNode("node-1")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.lingers, w.noBackoff = true, true
		w.start()
		w.eventually("the victims are ending", func() bool { return len(w.victims()) == 2 })
		w.finish("high-1")
		w.eventually("the gang lacks a member", func() bool { return !w.known("high").Complete })
		w.create(makePod("low"))
		w.finish("a")
		w.eventually("the other Pod finds no room", func() bool { return w.marked("low") == 1 })
		again := makePod("high-1", inGroup("high"), ofPriority(10))
		again.UID = "again"
		w.create(again)
		w.finish("b")
		w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
	})
}

// TestRoomIsReservedUntilAllAreGone: the place of one member is that of a victim, which is gone
// at once, and that of the other is that of a Pod which ends in some minutes.
func TestRoomIsReservedUntilAllAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		atOnce := func(w *schedulertesting.PodWrapper) { w.Spec.TerminationGracePeriodSeconds = new(int64) }
		slow := makePod("slow", onNode("node-1"), ofPriority(20))
		slow.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(5 * time.Minute)}
		slow.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300)
		slow.Finalizers = []string{"test/stays"}
		w := newWorld(t, all(makeNodes("node", 2, 1), makePod("victim", onNode("node-0"), atOnce), slow,
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.start()
		w.eventually("the victim is gone", func() bool { return len(w.victims()) == 1 })
		var reserved *room.Reservation
		w.eventually("room is reserved", func() bool { reserved = w.engine().room.Of(gangNamed("high")); return reserved != nil })
		if left := time.Until(reserved.End); left < 5*time.Minute {
			t.Errorf("room is reserved for %s, and the Pod takes five minutes", left)
		}
	})
}

// TestAReservationThatIsGivenUpIsGoneAlsoIfItHasShrunkMeanwhile: a cycle decides with the reservation that it has read,
// and the announced members come while the gang is planned.
func TestAReservationThatIsGivenUpIsGoneAlsoIfItHasShrunkMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeGroup("gang", 1))
		w.start()
		keeper, of := w.engine().keeper, room.Gang{Rank: queue.Rank{Key: gangNamed("gang")}}
		info := func(name string) *framework.PodInfo {
			member, err := framework.NewPodInfo(makePod(name, inGroup("gang"), onNode("node-0")))
			if err != nil {
				t.Fatal(err)
			}
			return member
		}
		all := room.New(of, room.MembersToCome, []*framework.PodInfo{info("gang-0"), info("gang-1")}, nil, time.Now().Add(time.Hour))
		left := room.New(of, room.MembersToCome, all.Members[:1], nil, all.End)
		keeper.become(t.Context(), nil, all)
		if got := keeper.lose(t.Context(), all, left); got != left {
			t.Fatalf("the gang has the reservation %v", got)
		}
		if got := keeper.lose(t.Context(), all, nil); got != left {
			t.Errorf("a part that is lost of the earlier reservation ends the present one: %v is left", got)
		}
		keeper.become(t.Context(), all, nil)
		if got := keeper.room.Of(of.Rank.Key); got != nil {
			t.Errorf("the gang still has the reservation %v", got)
		}
	})
}

// TestANominatedPodAndAReservationOnOneNode take it together, and a Pod that an extender does not want elsewhere finds no room there.
func TestANominatedPodAndAReservationOnOneNode(t *testing.T) {
	w := newWorld(t)
	w.args = `{"cycleTimeout":"60s"}`
	w.standBy()
	w.sched.Extenders = append(w.sched.Extenders, sluggish{pod: "gang-0", off: "node-1"})
	for _, object := range makeNodes("node", 2, 4) {
		w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
	}
	engine := w.engine()
	engine.room.Keep(room.New(gangAhead(), room.Preemption, podsOn(t, makePod("ahead-0", plusCores("1"), onNode("node-0"))), nil, time.Now().Add(time.Hour)))
	w.create(makePod("nominated", plusCores("1"), nominatedFor("node-0"), ofPriority(20)))
	w.eventually("the Pod is nominated", func() bool { return len(w.engine().queue.Nominated()) == 1 })
	view := viewOf(makeGroup("gang", 1), makeMembers("gang", 1, plusCores("1")))
	out, err := engine.plan(klog.NewContext(t.Context(), klog.Background()), &view, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Placements {
		t.Errorf("the gang is placed on %s", p.Node)
	}
}

// TestRoomForMembersToComeGoesToAGangAhead, also when another member of the gang is placed.
func TestRoomForMembersToComeGoesToAGangAhead(t *testing.T) {
	w := newWorld(t)
	w.args = `{"cycleTimeout":"60s"}`
	w.standBy()
	for _, object := range makeNodes("node", 2, 2) {
		w.sched.Cache.AddNode(klog.Background(), object.(*corev1.Node))
	}
	if err := w.sched.Cache.AddPod(klog.Background(), makePod("gang-0", inGroup("gang"), onNode("node-1"))); err != nil {
		t.Fatal(err)
	}
	engine := w.engine()
	engine.room.Keep(room.New(gangAhead(), room.Preemption, podsOn(t, makePod("ahead-0", plusCores("1"), onNode("node-0"))), nil, time.Now().Add(time.Hour)))
	view := viewOf(makeGroup("gang", 1), makeMembers("gang", 1))
	view.Placed = podgroup.Tally{}
	view.Placed.Add("", 1)
	view.ToCome = provision.Amounts{corev1.ResourceCPU: 3000}
	var toCome []*corev1.Pod
	for i := range 2 {
		pod := makePod(fmt.Sprint("to-come-", i), onNode("node-0"))
		pod.UID = provision.UID("uid-of-group-gang", i)
		toCome = append(toCome, pod)
	}
	view.own = room.New(room.Gang{}, room.MembersToCome, podsOn(t, toCome...), nil, time.Now().Add(time.Hour))
	out, err := engine.plan(klog.NewContext(t.Context(), klog.Background()), &view, false)
	if err != nil || len(out.Placements) != 1 {
		t.Fatalf("%d members are placed: %+v, %v", len(out.Placements), out.Shortfall, err)
	}
	if out.Reservation != nil {
		t.Errorf("room for %d members to come is kept on a node that another gang has", len(out.Reservation.Members))
	}
}

// gangAhead is a gang of a higher priority than those that have none.
func gangAhead() room.Gang {
	return room.Gang{Rank: queue.Rank{Key: dialect.Key{Dialect: gangName.Dialect, Namespace: gangName.Namespace, Name: "ahead"}, Priority: 10}}
}

// podsOn are Pods on their nodes.
func podsOn(t testing.TB, pods ...*corev1.Pod) []*framework.PodInfo {
	t.Helper()
	var infos []*framework.PodInfo
	for _, pod := range pods {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	return infos
}

// TestGangsOfOneShapeRespectTheSameReservations: a gang of high priority needs its room in five hours, and another reservation is of a
// gang between the two that are compared. Each of these has to respect one reservation, but not the same.
func TestGangsOfOneShapeRespectTheSameReservations(t *testing.T) {
	now := time.Now()
	rank := func(name string, priority int32, minute int) queue.Rank {
		return queue.Rank{Key: gangNamed(name), Priority: priority, Created: now.Add(time.Duration(minute) * time.Minute)}
	}
	e := &engine{estimates: true}
	later := room.New(room.Gang{Rank: rank("high", 1, 0)}, room.InTime, nil, nil, now.Add(time.Hour))
	later.From = now.Add(5 * time.Hour)
	e.room.Keep(later)
	e.room.Keep(room.New(room.Gang{Rank: rank("between", 0, 2)}, room.MembersToCome, nil, nil, now.Add(time.Hour)))
	viewOf := func(rank queue.Rank, runs time.Duration) *gangView {
		group := &dialect.Group{Key: rank.Key}
		group.Spec.Runtime.Expected = runs
		view := &gangView{Gang: place.Gang{View: gangs.View{Rank: rank, Group: group, Waiting: []*corev1.Pod{{}}}}, began: now}
		e.completeShape(view)
		return view
	}
	long, short := viewOf(rank("long", 0, 1), 9*time.Hour), viewOf(rank("short", 0, 3), 2*time.Hour)
	if long.shape == short.shape {
		t.Errorf("both gangs have the shape %q", long.shape)
	}
	if want := 5 * time.Hour; long.gap != want || short.gap != 0 {
		t.Errorf("the gaps are %v and %v, want %v and none", long.gap, short.gap, want)
	}
}
