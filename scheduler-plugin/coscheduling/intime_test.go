// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// TestManySmallGangsDoNotStarveABigOne: small gangs keep coming for the room that
// others leave, and the big one gets its cycle all the same. What does not fit
// where resources are reserved still runs elsewhere.
func TestManySmallGangsDoNotStarveABigOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(0, makeGroup("big", 2)),
			bornAt(1, makeGroup("small0", 1)), bornAt(1, makeGroup("small1", 1)),
			makePod("small0-0", inGroup("small0"), onNode("node-0")), makePod("small1-0", inGroup("small1"), onNode("node-1")),
			makeMembers("big", 2, wholeNode))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		got := w.condition("big", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if strings.Contains(got.Message, "reserved") {
			t.Errorf("resources are reserved at once: %q", got.Message)
		}
		w.eventually("resources are reserved for the big gang", func() bool {
			return w.sched != nil && w.waiting()[news.Reserved] == 1
		})
		// The small gangs come and go, faster than the big one finds the nodes free.
		w.create(bornAt(2, makeGroup("small2", 1)))
		w.create(makePod("small2-0", inGroup("small2")))
		w.deletePod("small0-0")
		w.eventually("the small gang has found no room", func() bool { return w.marked("small2") == 1 })
		got = w.condition("small2", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "resources are reserved for PodGroup ns/big, which is ahead"; !strings.Contains(got.Message, want) {
			t.Errorf("message %q, want one with %q", got.Message, want)
		}
		for _, node := range makeNodes("elsewhere", 1, 1) {
			w.create(node)
		}
		w.eventually("the small gang runs elsewhere", func() bool { return w.nodeOf()["small2-0"] == "elsewhere-0" })
		w.deletePod("small1-0")
		w.eventually("the big gang is placed", func() bool { return w.placed("big") == 2 })
	})
}

// runsFor says how long a gang probably runs.
func runsFor(seconds int32) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(spec *schedulingv1alpha1.PodGroupSpec) { spec.ExpectedRuntimeSeconds = &seconds }
}

// TestShortWorkPassesALargeGang: it needs two nodes on which gangs end in ten minutes. What ends before uses the cores that are
// free there until then, and what runs for longer does not.
func TestShortWorkPassesALargeGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1, runsFor(600)), makePod("one-0", inGroup("one"), onNode("node-0")),
			makeGroup("two", 1, runsFor(600)), makePod("two-0", inGroup("two"), onNode("node-1")))...)
		w.noBackoff = true
		w.start()
		w.eventually("resources are reserved for the large gang", func() bool { return w.waiting()[news.Reserved] == 1 })

		ordinary := func(name, seconds string) *corev1.Pod {
			return makePod(name, createdAt(6), func(p *schedulertesting.PodWrapper) {
				p.Annotation(schedulingv1alpha1.AnnotationExpectedRuntime, seconds)
			})
		}
		w.create(bornAt(5, makeGroup("long", 1, runsFor(1200))))
		w.create(makePod("long-0", inGroup("long")))
		w.create(ordinary("ordinary-long", "1200"))
		w.eventually("the long work finds no room", func() bool { return w.marked("long") == 1 && w.marked("ordinary-long") == 1 })
		w.create(bornAt(5, makeGroup("short", 1, runsFor(60))))
		w.create(makePod("short-0", inGroup("short")))
		w.create(ordinary("ordinary-short", "60"))
		w.eventually("the short work runs", func() bool { return w.placed("short") == 1 && w.placed("ordinary-short") == 1 })
		for _, name := range []string{"one-0", "short-0", "two-0", "ordinary-short"} {
			w.deletePod(name)
		}
		w.eventually("the large gang is placed", func() bool { return w.placed("big") == 2 })
		if w.placed("long") != 0 || w.placed("ordinary-long") != 0 {
			t.Error("work that runs for longer has overtaken it")
		}
	})
}

// TestShorterWorkPassesWhenALargeGangHasToWaitLonger: the gangs behind are too long at first. Then the large gang's node will be
// free later, so that the shorter ones end before. They ask for the same as the longest, which comes first.
func TestShorterWorkPassesWhenALargeGangHasToWaitLonger(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), bornAt(1, makeGroup("big", 4, runsFor(3600))), makeMembers("big", 4),
			makeGroup("one", 1, runsFor(600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)))...)
		w.start()
		w.eventually("resources are reserved for the large gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		for i, seconds := range []int32{36_000, 1800, 900} {
			name := []string{"long", "shorter", "shortest"}[i]
			w.create(bornAt(5+i, makeGroup(name, 1, runsFor(seconds))))
			w.create(makePod(name+"-0", inGroup(name)))
		}
		w.eventually("all gangs behind are refused", func() bool { return w.marked("long")+w.marked("shorter")+w.marked("shortest") == 3 })
		w.changeGroup("one", func(group *schedulingv1alpha1.PodGroup) { runsFor(3600)(&group.Spec) })
		w.eventually("the shorter gangs are placed", func() bool { return w.placed("shorter") == 1 && w.placed("shortest") == 1 })
		if w.placed("long") != 0 {
			t.Error("work that runs for longer has overtaken the large gang")
		}
	})
}

// TestWorkPassesAsSoonAsALargeGangHasToWaitALittleLonger: half an hour after nearly ten hours. The large gang hears of that five minutes
// after its reservation began, and the gang behind, which is two minutes younger, would be tried without an event two minutes later.
func TestWorkPassesAsSoonAsALargeGangHasToWaitALittleLonger(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), bornAt(1, makeGroup("big", 4, runsFor(3600))), makeMembers("big", 4),
			makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)))...)
		w.start()
		w.eventually("resources are reserved for the large gang", func() bool { return w.reserved("big") != nil })
		time.Sleep(2 * time.Minute)
		w.create(bornAt(5, makeGroup("late", 1, runsFor(36_600))))
		w.create(makePod("late-0", inGroup("late")))
		w.eventually("the gang behind is refused", func() bool { return w.marked("late") == 1 })
		w.changeGroup("one", func(group *schedulingv1alpha1.PodGroup) { runsFor(37_800)(&group.Spec) })
		time.Sleep(4 * time.Minute)
		if w.placed("late") != 1 {
			t.Error("the gang that ends before the room is needed still waits")
		}
	})
}

// TestAReservationMovesToWhereThereIsRoomEarlier: the large gang is to have a node where work ends in ten hours, half of which is free.
// Then a full node comes. If the gang is to have that node, a long gang may use the free half.
func TestAReservationMovesToWhereThereIsRoomEarlier(t *testing.T) {
	for name, tc := range map[string]struct {
		ends  int32 // the work on the new node, in seconds
		taint bool
		moves bool
	}{
		"the gang moves to a node that is free earlier":      {ends: 3600, moves: true},
		"it stays where it is as early":                      {ends: 36_000},
		"it stays if its members don't tolerate the new one": {ends: 3600, taint: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("half", 1, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode),
					makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("half-0")),
					bornAt(5, makeGroup("long", 1, runsFor(72_000))), makePod("long-0", inGroup("long")))...)
				w.start()
				w.condition("long", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				w.create(makeGroup("two", 1, runsFor(tc.ends)))
				w.create(makePod("two-0", inGroup("two"), onNode("full-0"), wholeNode))
				node := makeNodes("full", 1, 2)[0].(*corev1.Node)
				if tc.taint {
					node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
				}
				w.create(node)
				time.Sleep(5 * time.Minute)
				if moved := w.placed("long") == 1; moved != tc.moves {
					t.Errorf("the long gang got the free half: %t, want %t", moved, tc.moves)
				}
			})
		})
	}
}

// TestNoLongWorkSlipsInBetweenTwoReservations: when the job ends, the first gang takes one of its nodes, and the second needs the other
// and a node that is in use for an hour more. A long gang behind may have neither.
func TestNoLongWorkSlipsInBetweenTwoReservations(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 3, 2),
			bornAt(1, makeGroup("first", 1, runsFor(36_000))), makeMembers("first", 1, wholeNode), bornAt(2, makeGroup("second", 2, runsFor(3600))), makeMembers("second", 2, wholeNode),
			makeGroup("job", 2, runsFor(60)), makePod("job-0", inGroup("job"), onNode("node-0"), wholeNode, startedAgo(0)), makePod("job-1", inGroup("job"), onNode("node-1"), wholeNode, startedAgo(0)),
			makeGroup("other", 1, runsFor(3600)), makePod("other-0", inGroup("other"), onNode("node-2"), wholeNode, startedAgo(0)))...)
		w.args = `{"initialBackoff":"10s","maxBackoff":"60s"}`
		w.start()
		w.create(bornAt(5, makeGroup("long", 1, runsFor(72_000))))
		w.create(makePod("long-0", inGroup("long"), wholeNode))
		w.eventually("all wait", func() bool { return w.reserved("first") != nil && w.marked("long") == 1 && w.marked("second") == 2 })
		// The second gang is refused once more, in its back-off, because a gang behind may have a cycle. It may not have another so soon.
		w.changeGroup("second", func(group *schedulingv1alpha1.PodGroup) { runsFor(3601)(&group.Spec) })
		w.create(bornAt(6, makeGroup("last", 1, runsFor(72_000))))
		w.create(makePod("last-0", inGroup("last"), wholeNode))
		w.eventually("the last gang is refused", func() bool { return w.marked("last") == 1 && w.failures("second") == 2 })
		w.deletePod("job-0")
		w.deletePod("job-1")
		w.eventually("the first gang is placed, and resources are reserved for the second", func() bool { return w.placed("first") == 1 && w.reserved("second") != nil })
		if w.placed("long")+w.placed("last") > 0 {
			t.Error("a long gang has a node that the second gang needs")
		}
		w.deletePod("other-0")
		w.eventually("the second gang is placed", func() bool { return w.placed("second") == 2 })
	})
}

// TestAGangThatWaitsForMostWorkLeavesIdleNodesToOthers: a job uses three nodes, and the others are idle. A gang that has to wait for most of
// the job gets the job's nodes, and longer work may use an idle node. Other gangs keep the idle nodes, and wait for any Pod to end.
func TestAGangThatWaitsForMostWorkLeavesIdleNodesToOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		members, idle int
		unknown       bool // when the job ends
		passes        bool
	}{
		"a gang that waits for two of three Pods":     {members: 3, idle: 1, passes: true},
		"a gang that waits for one":                   {members: 2, idle: 1},
		"a large gang that waits for one":             {members: 4, idle: 3},
		"a gang that waits for no one knows how long": {members: 3, idle: 1, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				job := makeGroup("job", 3)
				if !tc.unknown {
					runsFor(3600)(&job.Spec)
				}
				w := newWorld(t, all(makeNodes("idle", tc.idle, 2), makeNodes("used", 3, 2), bornAt(1, makeGroup("big", int32(tc.members), runsFor(3600))), makeMembers("big", tc.members, wholeNode),
					job, makePod("job-0", inGroup("job"), onNode("used-0"), wholeNode, startedAgo(0)),
					makePod("job-1", inGroup("job"), onNode("used-1"), wholeNode, startedAgo(0)), makePod("job-2", inGroup("job"), onNode("used-2"), wholeNode, startedAgo(0)))...)
				w.start()
				w.eventually("resources are reserved for the gang", func() bool { return w.reserved("big") != nil })
				w.create(bornAt(5, makeGroup("long", 1, runsFor(72_000))))
				w.create(makePod("long-0", inGroup("long"), wholeNode))
				w.eventually("the long gang has had its cycle", func() bool { return w.placed("long") == 1 || w.marked("long") == 1 })
				if passes := w.placed("long") == 1; passes != tc.passes {
					t.Errorf("the long gang got an idle node: %t, want %t", passes, tc.passes)
				}
				for _, pod := range []string{"job-0", "job-1", "job-2"} {
					w.deletePod(pod)
				}
				w.eventually("the gang is placed", func() bool { return w.placed("big") == tc.members })
			})
		})
	}
}

// TestAReservationGrowsWithItsGang: a gang of one member has a node reserved, and then needs two members.
func TestAReservationGrowsWithItsGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode),
			makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0")),
			makeGroup("two", 1, runsFor(72_000)), makePod("two-0", inGroup("two"), onNode("node-1")))...)
		w.start()
		w.eventually("the node that is free earlier is reserved", func() bool { return w.reserved("big") != nil && !w.reserved("big").IsOn("node-1") })
		w.create(makePod("big-1", inGroup("big"), wholeNode))
		w.eventually("the member is known", func() bool { return w.known("big").Waiting.Total == 2 })
		w.changeGroup("big", func(group *schedulingv1alpha1.PodGroup) { group.Spec.MinMember = 2 })
		w.eventually("both nodes are reserved", func() bool { return w.reserved("big").IsOn("node-0") && w.reserved("big").IsOn("node-1") })
	})
}

// TestAGangWaitsWhereAPodIsInItsWay: that Pod ends in an hour on node-0, where two cores are free. On node-1 work ends in ten hours.
// Until then only short work may use the cores, however short the gang is itself.
func TestAGangWaitsWhereAPodIsInItsWay(t *testing.T) {
	for name, wants := range map[string]podOption{
		"because it has the gang's host port": func(p *schedulertesting.PodWrapper) { p.HostPort(8080) },
		"because neither may be beside the other": func(p *schedulertesting.PodWrapper) {
			p.Label("app", "trainer")
			p.PodAntiAffinityExists("app", corev1.LabelHostname, schedulertesting.PodAntiAffinityWithRequiredReq)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 4), bornAt(1, makeGroup("big", 1, runsFor(60))), makeMembers("big", 1, plusCores("1"), wants),
					makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), plusCores("1"), wants),
					makeGroup("two", 1, runsFor(36_000)), makePod("two-0", inGroup("two"), onNode("node-1"), startedAgo(0), plusCores("3")))...)
				w.start()
				w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
				for name, seconds := range map[string]int32{"short": 600, "long": 7200} {
					w.create(bornAt(5, makeGroup(name, 1, runsFor(seconds))))
					w.create(makePod(name+"-0", inGroup(name), plusCores("1")))
				}
				for range 50 {
					if time.Sleep(time.Minute); w.reserved("big") == nil || !w.reserved("big").IsOn("node-0") {
						t.Fatalf("no cores of node-0 are reserved: %s", w.told("big").Message)
					}
				}
				if w.placed("short") == 0 || w.placed("long") > 0 {
					t.Errorf("of the short gang %d Pods run, of the long one %d", w.placed("short"), w.placed("long"))
				}
				w.deletePod("short-0")
				w.deletePod("one-0")
				w.eventually("the gang is placed", func() bool { return w.placed("big") == 1 })
			})
		})
	}
}

// TestAGangWaitsForAPodInItsWayThatIsEnding, for as long as its grace period lasts.
func TestAGangWaitsForAPodInItsWayThatIsEnding(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		port := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }
		ending := func(p *schedulertesting.PodWrapper) {
			p.Terminating()
			p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(5 * time.Minute)}
			p.DeletionGracePeriodSeconds = new(int64(300))
		}
		w := newWorld(t, all(makeNodes("node", 1, 4), bornAt(1, makeGroup("big", 1, runsFor(60))), makeMembers("big", 1, plusCores("1"), port),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), plusCores("1"), port, ending))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		w.create(bornAt(5, makeGroup("short", 1, runsFor(60))))
		w.create(makePod("short-0", inGroup("short"), plusCores("1")))
		time.Sleep(2 * time.Minute)
		if w.placed("short") == 0 || w.reserved("big") == nil {
			t.Errorf("a short gang does not run meanwhile, or nothing is reserved: %s", w.told("big").Message)
		}
	})
}

// TestAReservationLeavesANodeWhereAnotherPodIsInItsWay, for a node that is free earlier. The Pod on node-0 has the gang's host port, and
// runs for five hours. On node-1 work ends in two hours, and when the reservation was made it was to end in ten.
func TestAReservationLeavesANodeWhereAnotherPodIsInItsWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		port := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }
		w := newWorld(t, all(makeNodes("node", 2, 4), bornAt(1, makeGroup("big", 1, runsFor(60))), makeMembers("big", 1, plusCores("2"), port),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), plusCores("1")),
			makeGroup("two", 1, runsFor(36_000)), makePod("two-0", inGroup("two"), onNode("node-1"), startedAgo(0), plusCores("3")))...)
		w.start()
		w.eventually("node-0 is reserved", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("node-0") })
		w.create(makeGroup("next", 1, runsFor(18_000)))
		w.create(makePod("next-0", inGroup("next"), onNode("node-0"), startedAgo(0), port))
		w.deletePod("one-0")
		w.changeGroup("two", func(group *schedulingv1alpha1.PodGroup) { group.Spec.ExpectedRuntimeSeconds = new(int32(7200)) })
		time.Sleep(5 * time.Minute)
		if r := w.reserved("big"); r == nil || !r.IsOn("node-1") {
			t.Errorf("it waits for five hours, not two: %+v, %s", r, w.told("big").Message)
		}
	})
}

// TestAReservationAndPodsInItsWay: the reservation is for a time in ten hours. Then another node comes.
func TestAReservationAndPodsInItsWay(t *testing.T) {
	port, none := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }, func(*schedulertesting.PodWrapper) {}
	for name, tc := range map[string]struct {
		here, there podOption // of the Pod that is on the node
		ends        int32     // the work on the other node, in seconds
		moves       bool
	}{
		"it moves to the port that is free in an hour":            {here: none, there: port, ends: 3600, moves: true},
		"it waits for the port if that takes little longer":       {here: port, there: none, ends: 35_000},
		"it does not wait for the port if that takes much longer": {here: port, there: none, ends: 3600, moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode, port),
					makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), tc.here))...)
				w.start()
				w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
				w.create(makeGroup("two", 1, runsFor(tc.ends)))
				w.create(makePod("two-0", inGroup("two"), onNode("late-0"), startedAgo(0), wholeNode, tc.there))
				w.create(makeNodes("late", 1, 2)[0])
				time.Sleep(5 * time.Minute)
				if moved := w.reserved("big").IsOn("late-0"); moved != tc.moves {
					t.Errorf("it has moved: %t, want %t", moved, tc.moves)
				}
			})
		})
	}
}

// TestANodeIsNotIdleForeverForAGang: the gang runs for a minute, and needs two nodes. One is idle; nobody knows when the work on
// the other ends.
func TestANodeIsNotIdleForeverForAGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(60))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1), makePod("one-0", inGroup("one"), onNode("node-0")),
			bornAt(5, makeGroup("long", 1, runsFor(72_000))), makePod("long-0", inGroup("long"), wholeNode))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		time.Sleep(10 * time.Minute)
		if w.placed("long") == 1 {
			t.Error("the long gang has got the idle node at once")
		}
		time.Sleep(20 * time.Minute)
		if w.placed("long") == 0 {
			t.Error("the node has been idle for half an hour")
		}
	})
}

// TestAGangWaitsForTheRackThatIsFreeFirst: in rack r0 there is room in less than eight hours, though not the way in which it is packed
// first. Nobody knows when there is room in rack r1.
func TestAGangWaitsForTheRackThatIsFreeFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		objects := all(makeNodes("n0", 1, 4, "rack=r0"), makeNodes("n1", 1, 4, "rack=r1"), makeNodes("n2", 1, 4, "rack=r0"), makeNodes("n3", 1, 4, "rack=r1"), makeNodes("n4", 1, 4, "rack=r0"),
			bornAt(1, makeGroup("big", 3, runsFor(3600), inOneRack)),
			makePod("big-0", inGroup("big"), plusCores("3")), makePod("big-1", inGroup("big"), plusCores("1")),
			makePod("big-2", inGroup("big"), plusCores("3")), makePod("big-3", inGroup("big"), plusCores("1")))
		for i, job := range []struct {
			node string
			ends int32 // in seconds; 0: unknown
			two  bool  // it takes two cores
		}{
			{"n0-0", 14214, false}, {"n0-0", 27358, true}, {"n0-0", 17814, false},
			{"n1-0", 34133, true}, {"n1-0", 14844, false},
			{"n2-0", 0, false}, {"n2-0", 21893, true}, {"n2-0", 9806, false},
			{"n3-0", 0, false}, {"n3-0", 10907, true},
			{"n4-0", 26442, true}, {"n4-0", 9605, false}, {"n4-0", 23691, false},
		} {
			name := fmt.Sprintf("job%d", i)
			group, options := makeGroup(name, 1), []podOption{inGroup(name), onNode(job.node), startedAgo(0)}
			if job.ends > 0 {
				group = makeGroup(name, 1, runsFor(job.ends))
			}
			if job.two {
				options = append(options, plusCores("1"))
			}
			objects = append(objects, group, makePod(name+"-0", options...))
		}
		w := newWorld(t, objects...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		if w.reserved("big").From.IsZero() {
			t.Error("nobody knows when the gang has its room")
		}
	})
}

// TestAReservationLeavesANodeWhereTheGangMayNotRun any more. Another node is free an hour later.
func TestAReservationLeavesANodeWhereTheGangMayNotRun(t *testing.T) {
	selects := func(p *schedulertesting.PodWrapper) { p.NodeSelector(map[string]string{"pool": "a"}) }
	for name, change := range map[string]func(*corev1.Node){
		"because it got a taint": func(node *corev1.Node) {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		},
		"because it lost a label": func(node *corev1.Node) { node.Labels["pool"] = "b" },
		"because it is to be maintained": func(node *corev1.Node) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, schedulingv1alpha1.AnnotationMaintenanceFrom, time.Now().Add(2*time.Hour).Format(time.RFC3339))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2, "pool=a"), bornAt(1, makeGroup("big", 1, runsFor(36_000))), makeMembers("big", 1, wholeNode, selects),
					makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0")),
					makeGroup("two", 1, runsFor(7200)), makePod("two-0", inGroup("two"), onNode("node-1")))...)
				w.start()
				w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("node-0") })
				w.changeNode("node-0", change)
				w.eventually("resources are reserved on the other node", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("node-1") })
			})
		})
	}
}

// TestAReservationLeavesANodeThatIsGone at once, before others take the room where the gang will be instead.
func TestAReservationLeavesANodeThatIsGone(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"deleted": func(w *world) {
			if err := w.kube.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"not reachable": func(w *world) {
			w.changeNode("node-0", func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode),
					makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), wholeNode, startedAgo(0)),
					makeGroup("two", 1, runsFor(72_000)), makePod("two-0", inGroup("two"), onNode("node-1"), wholeNode, startedAgo(0)))...)
				w.start()
				w.eventually("resources are reserved on the node", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("node-0") })
				happens(w)
				before := time.Now()
				w.eventually("resources are reserved on the other node", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("node-1") })
				if took := time.Since(before); took > 10*time.Second {
					t.Errorf("the reservation moved after %v", took)
				}
			})
		})
	}
}

// TestAReservationOutlastsATaint of 90 seconds on one of its nodes, as there is no other place.
func TestAReservationOutlastsATaint(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)),
			bornAt(5, makeGroup("long", 1, runsFor(72_000))), makePod("long-0", inGroup("long")))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		time.Sleep(5 * time.Minute)
		w.changeNode("node-0", func(node *corev1.Node) {
			node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}}
		})
		time.Sleep(90 * time.Second)
		w.changeNode("node-0", func(node *corev1.Node) { node.Spec.Taints = nil })
		time.Sleep(5 * time.Minute)
		if w.placed("long") > 0 {
			t.Error("the long gang has passed the first one")
		}
	})
}

// TestAReservationOutlastsShortWork that takes a device which the first gang needs.
func TestAReservationOutlastsShortWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all([]apiruntime.Object{deviceClass(), devices("node-0", 1), devices("node-1", 1)}, makeNodes("node", 2, 3),
			bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode, withDeviceClaim), deviceClaims("big-0", "big-1", "short-0"),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), wholeNode))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		time.Sleep(5 * time.Minute)
		w.create(bornAt(5, makeGroup("short", 1, runsFor(120))))
		w.create(makePod("short-0", inGroup("short"), withDeviceClaim))
		w.eventually("the short gang runs", func() bool { return w.placed("short") == 1 })
		time.Sleep(90 * time.Second)
		w.create(bornAt(6, makeGroup("long", 1, runsFor(72_000))))
		w.create(makePod("long-0", inGroup("long"), wholeNode))
		time.Sleep(2 * time.Minute)
		if w.placed("long") > 0 {
			t.Error("the long gang has passed the first one")
		}
	})
}

// TestAReservationStaysWhenAMemberIsReplaced: there is a place that is free a little earlier.
func TestAReservationStaysWhenAMemberIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode),
			makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		w.create(makeGroup("two", 1, runsFor(35_000)))
		w.create(makePod("two-0", inGroup("two"), onNode("late-0"), startedAgo(0), wholeNode))
		w.create(makeNodes("late", 1, 2)[0])
		w.create(makePod("big-1", inGroup("big"), wholeNode))
		w.deletePod("big-0")
		time.Sleep(5 * time.Minute)
		if !w.reserved("big").IsOn("node-0") {
			t.Error("it has moved for nothing")
		}
	})
}

// TestAReservationFollowsTheTopology of its group, which asks for one rack only later.
func TestAReservationFollowsTheTopology(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("a", 2, 2, "rack=a"), makeNodes("b", 1, 2, "rack=b"), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("a-0"), startedAgo(0)),
			makeGroup("two", 1, runsFor(7200)), makePod("two-0", inGroup("two"), onNode("a-1"), startedAgo(0)),
			makeGroup("three", 1, runsFor(3600)), makePod("three-0", inGroup("three"), onNode("b-0"), startedAgo(0)))...)
		w.start()
		w.eventually("resources are reserved in both racks", func() bool { return w.reserved("big") != nil && w.reserved("big").IsOn("b-0") })
		w.changeGroup("big", func(group *schedulingv1alpha1.PodGroup) { inOneRack(&group.Spec) })
		w.eventually("resources are reserved in one rack", func() bool { return w.reserved("big").IsOn("a-0") && w.reserved("big").IsOn("a-1") })
	})
}

// inOneRack has all members of a group run in one rack.
func inOneRack(spec *schedulingv1alpha1.PodGroupSpec) {
	spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
}

// reserved is what is reserved for a gang, nil if nothing is.
func (w *world) reserved(group string) *room.Reservation { return w.engine().room.Of(gangNamed(group)) }

// TestAGangBehindIsNotToldWhenAReservationEnds: the reservation for a gang ahead lasts until that gang is placed, and when
// that will be changes with each Pod that ends. A message with that time would be written again for each waiting gang.
func TestAGangBehindIsNotToldWhenAReservationEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
			makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0")),
			bornAt(5, makeGroup("long", 1, runsFor(72_000))), makePod("long-0", inGroup("long")))...)
		w.start()
		first := w.condition("long", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "reserved for PodGroup ns/big, which is ahead"; !strings.Contains(first.Message, want) {
			t.Errorf("message %q, want it to contain %q", first.Message, want)
		}
		time.Sleep(time.Hour)
		if later := w.condition("long", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources); later.Message != first.Message {
			t.Errorf("after an hour the message is %q, want %q as before", later.Message, first.Message)
		}
	})
}

// TestAPortStaysInUseBesideAReservation: the first gang waits for a Pod that has its host port. Another gang has a cycle, and
// then a short one comes that wants the port, too.
func TestAPortStaysInUseBesideAReservation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		port := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), port, plusCores("1")),
			bornAt(1, makeGroup("first", 1)), makePod("first-0", inGroup("first"), port, plusCores("2")))...)
		w.start()
		w.eventually("resources are reserved for the first gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		for _, object := range all(bornAt(5, makeGroup("large", 3)), makeMembers("large", 3)) {
			w.create(object)
		}
		w.condition("large", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.create(bornAt(6, makeGroup("short", 1, runsFor(60))))
		w.create(makePod("short-0", inGroup("short"), port))
		w.condition("short", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if w.placed("short") > 0 {
			t.Error("two Pods on a node have one host port")
		}
	})
}

// TestAPortIsReservedOnAllAddresses, for a gang that wants the port on all of them and waits for a Pod that has the port of one.
func TestAPortIsReservedOnAllAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		portOf := func(address string) podOption {
			return func(p *schedulertesting.PodWrapper) {
				p.ContainerPort([]corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080, HostIP: address, Protocol: corev1.ProtocolTCP}})
			}
		}
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("one", 1, runsFor(36_000)), makePod("one-0", inGroup("one"), onNode("node-0"), portOf("127.0.0.1"), plusCores("1")),
			bornAt(1, makeGroup("first", 1)), makePod("first-0", inGroup("first"), portOf("")))...)
		w.start()
		w.eventually("resources are reserved for the first gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.create(bornAt(6, makeGroup("long", 1, runsFor(720_000))))
		w.create(makePod("long-0", inGroup("long"), portOf("10.0.0.1")))
		w.condition("long", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	})
}

// TestWorkThatOverrunsItsEstimateIsPreempted on the nodes of a gang that is due, if the administrator allows that.
func TestWorkThatOverrunsItsEstimateIsPreempted(t *testing.T) {
	for args, want := range map[string]bool{`{"backfill":{"preemptOverrun":true}}`: true, `{}`: false} {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
				makeGroup("one", 1, runsFor(600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0)),
				makeGroup("two", 1, runsFor(1200)), makePod("two-0", inGroup("two"), onNode("node-1"), startedAgo(0)))...)
			w.args = args
			w.start()
			w.eventually("resources are reserved for the large gang", func() bool { return w.waiting()[news.Reserved] == 1 })
			time.Sleep(15 * time.Minute)
			if len(w.victims()) > 0 {
				t.Error("a gang is preempted before the other one was to end")
			}
			w.deletePod("two-0")
			time.Sleep(2 * time.Minute)
			if got := slices.Contains(w.victims(), "one-0"); got != want {
				t.Errorf("with %s the gang that runs too long was preempted: %t, want %t", args, got, want)
			}
		})
	}
}

// TestEstimatesCountOnlyWhereTheyAreAllowed: nobody enforces how long a gang runs that has no Framework.
func TestEstimatesCountOnlyWhereTheyAreAllowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("big", 1, runsFor(3600))), makeMembers("big", 1, wholeNode),
			makeGroup("one", 1, runsFor(600)), makePod("one-0", inGroup("one"), onNode("node-0")))...)
		w.args = `{"backfill":{"estimates":false}}`
		w.start()
		w.eventually("resources are reserved for the large gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.create(bornAt(5, makeGroup("short", 1, runsFor(60))))
		w.create(makePod("short-0", inGroup("short")))
		w.eventually("the short gang finds no room", func() bool { return w.marked("short") == 1 })
	})
}

// TestOrdinaryPodsDoNotStarveAGang: ordinary Pods keep coming too. Those that the
// gang is ahead of leave its room alone, and run where there is other room.
func TestOrdinaryPodsDoNotStarveAGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(5, makeGroup("big", 2)), makeMembers("big", 2, wholeNode),
			makePod("runs-0", onNode("node-0")), makePod("runs-1", onNode("node-1")))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		w.eventually("resources are reserved for the big gang", func() bool { return w.waiting()[news.Reserved] == 1 })

		ordinary := func(name string, created int, options ...podOption) *corev1.Pod {
			return makePod(name, append(options, createdAt(created))...)
		}
		w.create(ordinary("younger", 6))
		w.eventually("the younger Pod has found no room", func() bool { return w.marked("younger") == 1 })
		w.create(ordinary("older", 4))
		w.create(ordinary("higher", 6, ofPriority(1)))
		w.eventually("the older Pod and the one of higher priority are placed", func() bool {
			return w.placed("older") == 1 && w.placed("higher") == 1
		})
		if w.placed("younger") != 0 {
			t.Error("the younger Pod took resources that are reserved for the gang")
		}
		for _, node := range makeNodes("elsewhere", 1, 1) {
			w.create(node)
		}
		w.eventually("the younger Pod runs elsewhere", func() bool { return w.nodeOf()["younger"] == "elsewhere-0" })
		for _, name := range []string{"runs-0", "older", "runs-1", "higher"} {
			w.deletePod(name)
		}
		w.eventually("the big gang is placed", func() bool { return w.placed("big") == 2 })
	})
}

// waiting counts the gangs that wait by reason, as the metric does.
func (w *world) waiting() map[string]int {
	w.t.Helper()
	return w.engine().reader.CountWaiting()
}

// TestAServiceIsRolledOutBesideAGangThatStarves: what its old Pods leave is for the new
// ones. Nothing is reserved on nodes where only services run, as they don't end.
func TestAServiceIsRolledOutBesideAGangThatStarves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		service := func(name, node string) *corev1.Pod { return makePod(name, ofService, onNode(node), createdAt(5)) }
		w := newWorld(t, all(makeNodes("node", 1, 3), makeNodes("served", 1, 3), bornAt(1, makeGroup("big", 1)),
			makeMembers("big", 1, plusCores("1")),
			service("old-0", "node-0"), service("old-1", "served-0"), service("old-2", "served-0"),
			makePod("job-0", onNode("node-0")), makePod("job-1", onNode("node-0")), service("old-3", "served-0"))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		w.eventually("resources are reserved for the gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		for i, node := range []string{"node-0", "served-0", "served-0"} {
			old, new := fmt.Sprintf("old-%d", i), fmt.Sprintf("new-%d", i)
			before := w.failures("big")
			w.deletePod(old)
			if node == "node-0" {
				w.eventually("the gang was planned again", func() bool { return w.failures("big") > before })
			}
			w.create(service(new, ""))
			w.eventually(new+" has the place of "+old, func() bool { return w.nodeOf()[new] == node })
		}
		younger := makePod("younger", createdAt(5))
		w.deletePod("job-0")
		w.create(younger)
		w.eventually("the younger Pod finds no room", func() bool { return w.marked("younger") == 1 })
		w.deletePod("job-1")
		w.eventually("the gang is placed", func() bool { return w.placed("big") == 1 })
	})
}

// TestNothingIsReservedWhereOnlyServicesRun, DaemonSets and static Pods among them: they
// don't end.
func TestNothingIsReservedWhereOnlyServicesRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("big", 1)), makeMembers("big", 1, plusCores("1")),
			makePod("service-0", ofService, onNode("node-0")))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.noBackoff = true
		w.start()
		w.condition("big", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("it is known that the gang can't be helped", func() bool { return w.helpless("big") })
		younger := makePod("younger", ofService, createdAt(5))
		w.create(younger)
		w.eventually("the younger Pod is placed", func() bool { return w.placed("younger") == 1 })
	})
}

// TestWorkInReservedRoomCostsTheGangNoReservation: by its estimate an ordinary Pod ends in five minutes, so the Pod may use reserved room. The
// gang then waits for that Pod, too, even if the Pod's containers are always restarted.
func TestWorkInReservedRoomCostsTheGangNoReservation(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyAlways} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, wholeNode),
					makeGroup("one", 1, runsFor(1200)), makePod("one-0", inGroup("one"), onNode("node-0")),
					makeGroup("two", 1, runsFor(1200)), makePod("two-0", inGroup("two"), onNode("node-1")))...)
				w.start()
				w.eventually("resources are reserved for the large gang", func() bool { return w.reserved("big") != nil })
				w.create(makePod("ordinary", createdAt(6), func(p *schedulertesting.PodWrapper) {
					p.Annotation(schedulingv1alpha1.AnnotationExpectedRuntime, "300")
					p.Spec.RestartPolicy = policy
				}))
				w.eventually("the Pod runs in reserved room", func() bool { return w.placed("ordinary") == 1 })
				before := w.reserved("big")
				w.eventually("the gang has renewed or lost its reservation", func() bool { return w.reserved("big") != before })
				if w.reserved("big") == nil {
					t.Errorf("nothing is reserved for the large gang, which is told %q", w.told("big").Message)
				}
			})
		})
	}
}

// TestAGangThatCantBeHelpedKeepsNoOtherFromIt: its node selector fits no node.
func TestAGangThatCantBeHelpedKeepsNoOtherFromIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nowhere := selecting("no", "such")
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(0, makeGroup("hopeless", 1)), makeMembers("hopeless", 1, nowhere),
			bornAt(1, makeGroup("big", 1)), makeMembers("big", 1, plusCores("1")), makePod("job-0", onNode("node-0")))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		w.eventually("resources are reserved for the gang behind", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.deletePod("job-0")
		w.eventually("it is placed", func() bool { return w.placed("big") == 1 })
	})
}

// TestTheClusterIsNotKeptIdleForOneGangAfterTheOther: each of two gangs needs both nodes, and nobody knows when the job ends that runs on
// one of them. The other node is idle for the first gang for three minutes. So for a while it is not kept idle for the second.
func TestTheClusterIsNotKeptIdleForOneGangAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("first", 2)), makeMembers("first", 2, wholeNode), makePod("job-0", onNode("node-0")))...)
		w.args = `{"reservations":{"idlePercent":10}}`
		w.start()
		w.eventually("resources are reserved for the first gang", func() bool { return w.reserved("first") != nil })
		time.Sleep(3*time.Minute + 30*time.Second)
		w.deletePod("job-0")
		w.eventually("the first gang is placed", func() bool { return w.placed("first") == 2 })
		w.create(makePod("job-1", onNode("node-0")))
		time.Sleep(time.Second)
		w.deleteGroup("first")
		w.deletePod("first-0")
		w.deletePod("first-1")
		w.create(makeGroup("second", 2))
		for _, member := range makeMembers("second", 2, wholeNode) {
			w.create(member)
		}
		begun := time.Now()
		time.Sleep(2 * time.Minute) // a gang without an estimate has no reservation in the first minute
		w.create(makePod("younger", wholeNode))
		w.eventually("a younger Pod has the idle node", func() bool { return w.placed("younger") == 1 })
		if got, want := w.told("second").Message, "nodes were kept idle for others"; !strings.Contains(got, want) {
			t.Errorf("the second gang is told %q, want %q in it", got, want)
		}
		for w.reserved("second") == nil && time.Since(begun) < time.Hour {
			time.Sleep(10 * time.Second)
		}
		// Of two nodes one was idle for some three minutes, and a tenth of all node time may be idle.
		if took := time.Since(begun); took < 8*time.Minute || took > 20*time.Minute {
			t.Errorf("resources are reserved for the second gang after %v", took)
		}
	})
}

// failures is how often in a row a gang has found no place.
func (w *world) failures(group string) int {
	return w.known(group).Failures
}

// TestWhatIsOwedKeepsNoGangBehindFromAReservationWithAKnownStart: a node was idle for a gang for hours, so nothing is reserved for the second
// gang, which waits for the same job. The third gang, behind the second, waits for work of twenty hours.
func TestWhatIsOwedKeepsNoGangBehindFromAReservationWithAKnownStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		service, timed := selecting("kind", "service"), selecting("kind", "timed")
		w := newWorld(t, all(makeNodes("service", 2, 2, "kind=service"), makeNodes("timed", 1, 2, "kind=timed"), makePod("job-0", onNode("service-0")),
			makeGroup("one", 1, runsFor(72_000)), makePod("one-0", inGroup("one"), onNode("timed-0"), startedAgo(0)),
			bornAt(1, makeGroup("first", 2)), makeMembers("first", 2, wholeNode, service))...)
		w.start()
		time.Sleep(10 * time.Hour)
		w.deleteGroup("first")
		w.deletePod("first-0")
		w.deletePod("first-1")
		w.create(bornAt(5, makeGroup("second", 2)))
		for _, member := range makeMembers("second", 2, wholeNode, service) {
			w.create(member)
		}
		time.Sleep(2 * time.Minute)
		if got, want := w.told("second").Message, "nodes were kept idle for others"; !strings.Contains(got, want) {
			t.Fatalf("the second gang is told %q, want %q in it", got, want)
		}
		w.create(bornAt(6, makeGroup("third", 1, runsFor(3600))))
		w.create(makePod("third-0", inGroup("third"), wholeNode, timed))
		time.Sleep(6 * time.Minute)
		if w.reserved("third") == nil {
			t.Errorf("nothing is reserved for the gang behind, which is told %q", w.told("third").Message)
		}
	})
}

// TestAStatedRunTimeKeepsNoNodesIdleForLonger: a gang states that it runs for ten years. The gang waits for a job, and nobody knows when
// the job ends. Within an hour an ordinary Pod behind the gang gets the idle node.
func TestAStatedRunTimeKeepsNoNodesIdleForLonger(t *testing.T) {
	for name, args := range map[string]string{
		"where estimates count": `{"initialBackoff":"50ms","maxBackoff":"200ms"}`,
		"and where they do not": `{"initialBackoff":"50ms","maxBackoff":"200ms","backfill":{"estimates":false}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), bornAt(1, makeGroup("liar", 2, runsFor(schedulingv1alpha1.MaxRuntimeSeconds))),
					makeMembers("liar", 2, wholeNode), makePod("job-0", onNode("node-0")))...)
				w.args = args
				w.start()
				w.eventually("resources are reserved", func() bool { return w.reserved("liar") != nil })
				w.create(makePod("younger", wholeNode, createdAt(6)))
				time.Sleep(time.Hour)
				if w.placed("younger") == 0 {
					t.Errorf("a node is idle for an hour; the gang is told %q", w.told("liar").Message)
				}
			})
		})
	}
}

// TestTwoBrokenGangsDoNotWaitForEachOther: each has lost a member, and the cluster has no
// room but theirs. The one behind gives way.
func TestTwoBrokenGangsDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		placed := func(group string) []apiruntime.Object {
			return makeMembers(group, 3, onNode("node-0"))
		}
		replacement := func(group string) *corev1.Pod { return makePod(group+"-9", inGroup(group)) }
		w := newWorld(t, all(makeNodes("node", 1, 6), bornAt(1, makeGroup("first", 4)), bornAt(2, makeGroup("second", 4)),
			placed("first"), placed("second"), replacement("first"), replacement("second"))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		time.Sleep(5 * time.Minute)
		w.eventually("the first is whole", func() bool { return w.placed("first") == 4 })
		if n := w.placed("second"); n != 0 {
			t.Errorf("%d members of the second are left", n)
		}
	})
}

// helpless says whether a gang has given up its right to be helped.
func (w *world) helpless(group string) bool {
	return w.told(group).Helpless > 0
}

// TestAMemberThatItsNodeRejectsLeavesReservedRoomAlone: the planner puts both members on the small node, which has a volume for one of
// them. There is another volume on a node that is reserved.
func TestAMemberThatItsNodeRejectsLeavesReservedRoomAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		objects := all(makeNodes("node", 2, 4), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, plusCores("3")),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), plusCores("3")))
		w := newWorld(t, append(objects, localClass(), localVolume("small-0"), localVolume("node-1"))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		for _, object := range all(makeNodes("small", 1, 2), volumeClaims("late", 2), bornAt(5, makeGroup("late", 2)), makeMembers("late", 2, withVolumeClaim)) {
			w.create(object)
		}
		time.Sleep(time.Minute)
		if w.placed("late") > 0 {
			t.Error("the gang behind is placed on a node that is reserved")
		}
		w.deletePod("one-0")
		w.eventually("the first gang is placed", func() bool { return w.placed("big") == 2 })
	})
}

// TestWhatAGangBehindAReservationLacks: two of the three members would have room beside what is reserved.
func TestWhatAGangBehindAReservationLacks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 4), makeNodes("small", 1, 2), bornAt(1, makeGroup("big", 2, runsFor(3600))), makeMembers("big", 2, plusCores("3")),
			makeGroup("one", 1, runsFor(3600)), makePod("one-0", inGroup("one"), onNode("node-0"), startedAgo(0), plusCores("3")))...)
		w.start()
		w.eventually("resources are reserved", func() bool { return w.reserved("big") != nil })
		for _, object := range all(bornAt(5, makeGroup("late", 3)), makeMembers("late", 3)) {
			w.create(object)
		}
		w.condition("late", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if got, want := w.told("late").Message, "there is room for 2 of the 3 members that are needed; the others are short of 1 cpu"; !strings.HasPrefix(got, want) {
			t.Errorf("it is told %q, want %q", got, want)
		}
	})
}
