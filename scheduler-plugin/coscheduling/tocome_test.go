// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// keeping are arguments of a scheduler that keeps room for members to come.
func keeping(more string) string {
	return `{"initialBackoff":"50ms","maxBackoff":"200ms","reservations":{"maxPercent":100,"membersToCome":{"namespaces":["ns"],"namespaceMaxPercent":100` + more + `}}}`
}

// asking has a PodGroup ask for CPU for all its members.
func asking(cores string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(spec *schedulingv1alpha1.PodGroupSpec) {
		spec.MinResources = map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse(cores)}
	}
}

// makeSpark makes the PodGroup of scheduler-plugins that the Spark operator makes for an application,
// born in a second.
func makeSpark(name string, cores string, second int) *unstructured.Unstructured {
	group := makeOtherGroup(name, 1)
	group.SetCreationTimestamp(bornAt(second, makeGroup("", 1)).CreationTimestamp)
	if err := unstructured.SetNestedStringMap(group.Object, map[string]string{"cpu": cores, "limits.cpu": "99"}, "spec", "minResources"); err != nil {
		panic(err)
	}
	return group
}

func ofSpark(name string) podOption { return labelled("scheduling.x-k8s.io/pod-group", name) }

// cores has a Pod request n cores, in the place of one.
func cores(n string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
}

// kept is the room that is kept for members to come of a gang, and how many of them are on which
// node; nil if none is.
func (w *world) kept(key dialect.Key) (provision.Amounts, map[string]int) {
	w.t.Helper()
	kept := w.engine().room.Of(key)
	if kept == nil || kept.Reason != room.MembersToCome {
		return nil, nil
	}
	on := make(map[string]int)
	for _, member := range kept.Members {
		on[member.Pod.Spec.NodeName]++
	}
	return kept.Takes.WithoutPods(), on
}

func sparkNamed(name string) dialect.Key {
	return dialect.Key{Dialect: dialect.SchedulerPlugins, Namespace: testNamespace, Name: name}
}

// keeps says whether a number of cores are kept for a gang.
func (w *world) keeps(key dialect.Key, cores int64) bool {
	held, _ := w.kept(key)
	return held[corev1.ResourceCPU] == cores*1000
}

// toldSpark says whether a group was last told something with a text in it.
func (w *world) toldSpark(name, text string) bool {
	known, _ := w.engine().reader.Look(sparkNamed(name))
	return known.Refusal != nil && strings.Contains(known.Refusal.Message, text)
}

// TestASparkStartsWithAllOfItsRoom is the worked example of docs/scheduler-design.md: on three nodes of
// 8 cpu, a driver of 1 asks for 13. Another one of the same size finds 11 free. Ordinary Pods run
// beside, and executors have the room that is kept until nothing is.
func TestASparkStartsWithAllOfItsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 3, 8)...)
		w.args = keeping("")
		w.serve(makeSpark("a", "13", 1), makeSpark("b", "13", 2))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("12 cpu are kept for the first one", func() bool { return w.keeps(sparkNamed("a"), 12) })
		if _, on := w.kept(sparkNamed("a")); len(on) != 2 {
			t.Errorf("the room is kept on %v, want two nodes", on)
		}
		w.create(makePod("b-driver", ofSpark("b")))
		w.eventually("the other one is told why it waits", func() bool {
			return w.toldSpark("b", "there is room for 11 of the 13 members that are needed; the others are short of 2 cpu")
		})

		w.create(makePod("plain-0", cores("4"), createdAt(3)))
		w.create(makePod("plain-1", cores("4"), createdAt(3)))
		w.eventually("two ordinary Pods run beside it", func() bool { return w.placed("plain-") == 2 })
		w.create(makePod("plain-2", cores("4"), createdAt(3)))
		w.eventually("a third one finds no room", func() bool { return w.marked("plain-2") == 1 })
		if w.nodeOf()["b-driver"] != "" {
			t.Error("the other driver has started")
		}

		for i := range 6 {
			w.create(makePod(fmt.Sprintf("a-exec-%d", i), ofSpark("a"), cores("2")))
			w.eventually(fmt.Sprintf("executor %d runs", i), func() bool { return w.placed("a-exec-") == i+1 })
			w.eventually("room is kept for those that are missing", func() bool { return w.keeps(sparkNamed("a"), int64(10-2*i)) })
		}
		if held, _ := w.kept(sparkNamed("a")); held != nil {
			t.Errorf("all have come, and %s is kept", held)
		}
		w.countsRoom("filled")
		for i := range 6 {
			w.end(fmt.Sprintf("a-exec-%d", i), corev1.PodSucceeded)
		}
		w.end("a-driver", corev1.PodSucceeded)
		w.deletePod("plain-0")
		w.eventually("the other one starts", func() bool { return w.nodeOf()["b-driver"] != "" })
	})
}

// TestMembersToComeNeedNotLeaveTheirOwnRoomAlone, whatever names their group: of Volcano's it is an annotation. All of
// the room that is kept is planned anew with each member that comes.
func TestMembersToComeNeedNotLeaveTheirOwnRoomAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 4)...)
		w.args = strings.Replace(keeping(""), "{", `{"podGroupAPIs":{"volcano":{"mode":"On"}},`, 1)
		w.serveDialect(dialect.Volcano, asksFor("a", 1, "5"))
		w.start()
		a := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "a"}
		w.create(makePod("a-driver", ofVolcano("a")))
		w.eventually("room is kept for all executors", func() bool { return w.keeps(a, 4) })
		for i := range 4 {
			w.create(makePod(fmt.Sprintf("a-exec-%d", i), ofVolcano("a")))
			w.eventually(fmt.Sprintf("executor %d runs", i), func() bool { return w.placed("a-exec-") == i+1 })
			w.eventually("room is kept for those that are missing", func() bool { return w.keeps(a, int64(3-i)) })
		}
		if lost := w.recorded("ReservationLost"); lost > 0 {
			t.Errorf("%d events say that room has gone to others, and there are none", lost)
		}
	})
}

// TestRoomIsGivenUpWhenNobodyComes, and then the other one starts. The members that come after that are
// placed as they fit.
func TestRoomIsGivenUpWhenNobodyComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.args = keeping(`,"timeout":"2s"`)
		w.serve(makeSpark("a", "9", 1), makeSpark("b", "9", 2))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 8) })
		w.create(makePod("b-driver", ofSpark("b")))
		w.eventually("the other one waits", func() bool { return w.toldSpark("b", "of the members are still to come, for") })
		w.eventually("the other one starts", func() bool { return w.keeps(sparkNamed("b"), 8) })
		w.eventually("the first one is told", func() bool {
			return w.recorded("ReservationExpired room for 8 cpu was kept for members to come, and is not any more: they did not come in time") > 0
		})
		w.countsRoom("expired")
		w.create(makePod("a-exec-0", ofSpark("a"), cores("2")))
		w.eventually("its executor runs", func() bool { return w.nodeOf()["a-exec-0"] != "" })
		if held, _ := w.kept(sparkNamed("a")); held != nil {
			t.Errorf("%s is kept again", held)
		}
	})
}

// TestAGroupShortensTheTime, and nothing else: it is by the field of its kind.
func TestAGroupShortensTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.args = keeping("")
		short := makeSpark("a", "9", 1)
		if err := unstructured.SetNestedField(short.Object, int64(1), "spec", "scheduleTimeoutSeconds"); err != nil {
			t.Fatal(err)
		}
		w.serve(short)
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("it is told that the time is over", func() bool { return w.recorded("ReservationExpired") > 0 })
	})
}

// TestWhoOutranksAGangTakesItsRoom: the group is told when the next member comes, which has what is left.
func TestWhoOutranksAGangTakesItsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.args = keeping("")
		w.serve(makeSpark("a", "9", 1))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 8) })
		w.create(makePod("equal", cores("8"), createdAt(3)))
		w.eventually("a Pod of its priority finds no room", func() bool { return w.marked("equal") == 1 })
		w.create(makePod("higher", cores("8"), ofPriority(1), createdAt(3)))
		w.eventually("one that outranks it does", func() bool { return w.nodeOf()["higher"] != "" })
		w.create(makePod("a-exec", ofSpark("a"), cores("2")))
		w.eventually("the group is told", func() bool {
			return w.recorded("ReservationLost of the room that was kept for members to come, 1 cpu has gone to others; kept is room for 7 cpu") == 1
		})
		w.eventually("the executor has of what is left", func() bool { return w.nodeOf()["a-exec"] == "node-0" && w.keeps(sparkNamed("a"), 5) })
		w.countsRoom()
		w.create(makePod("highest", cores("5"), ofPriority(2), createdAt(3)))
		w.eventually("another one takes the rest", func() bool { return w.nodeOf()["highest"] != "" })
		w.create(makePod("a-exec-2", ofSpark("a"), cores("2")))
		w.eventually("the group is told", func() bool {
			return w.recorded("ReservationLost of the room that was kept for members to come, 5 cpu has gone to others; kept is room for nothing") == 1
		})
		w.countsRoom("lost")
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("%v are evicted, and nobody is where the room was", victims)
		}
	})
}

// countsRoom checks how rooms for members to come have ended, by the metrics: in these ways, and in no other.
func (w *world) countsRoom(results ...string) {
	w.t.Helper()
	for _, result := range []string{"filled", "expired", "lost", "gone"} {
		count := func() float64 {
			n, err := testutil.GetCounterMetricValue(w.engine().metrics.Reservations.WithLabelValues(result))
			if err != nil {
				w.t.Fatal(err)
			}
			return n
		}
		if slices.Contains(results, result) {
			w.eventually("room that ended as "+result+" is counted", func() bool { return count() > 0 })
		} else if n := count(); n > 0 {
			w.t.Errorf("room is counted %v times as %s, and none has ended so", n, result)
		}
	}
}

// TestRoomThatIsKeptIsMeasured: CPU in cores, and all else as it is.
func TestRoomThatIsKeptIsMeasured(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		large := makeNodes("node", 1, 8)
		large[0].(*corev1.Node).Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("8Gi")
		w := newWorld(t, large...)
		w.args, w.registry = keeping(""), metrics.NewKubeRegistry()
		spark := makeSpark("a", "3500m", 1)
		if err := unstructured.SetNestedField(spark.Object, "1Gi", "spec", "minResources", "memory"); err != nil {
			t.Fatal(err)
		}
		spark.SetAnnotations(map[string]string{schedulingv1alpha1.AnnotationExpectedMembers: "2"})
		w.serve(spark)
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept", func() bool { held, _ := w.kept(sparkNamed("a")); return held != nil })
		want := `# HELP lockstep_scheduler_reserved_resources [ALPHA] Room that is kept free for gangs, as of the last cycle of each, by the reason for the reservation and by resource: cores of CPU, bytes, or the number.
# TYPE lockstep_scheduler_reserved_resources gauge
lockstep_scheduler_reserved_resources{reason="MembersToCome",resource="cpu"} 2.5
lockstep_scheduler_reserved_resources{reason="MembersToCome",resource="memory"} 1.073741824e+09
`
		if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want), "lockstep_scheduler_reserved_resources"); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsKeptWhereItIsNotEnabled: what a group asks for means nothing then.
func TestNothingIsKeptWhereItIsNotEnabled(t *testing.T) {
	for name, args := range map[string]string{
		"in no namespace":      `{"initialBackoff":"50ms"}`,
		"in another namespace": `{"initialBackoff":"50ms","reservations":{"membersToCome":{"namespaces":["others"]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, makeNodes("node", 1, 2)...)
				w.args = args
				w.serve(makeSpark("a", "13", 1))
				w.start()
				w.create(makePod("a-driver", ofSpark("a")))
				w.eventually("the driver runs", func() bool { return w.nodeOf()["a-driver"] != "" })
				if held, _ := w.kept(sparkNamed("a")); held != nil {
					t.Errorf("%s is kept", held)
				}
			})
		})
	}
}

// TestRoomIsLookedAtWithoutBeingKept, if the time for it is none.
func TestRoomIsLookedAtWithoutBeingKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 8)...)
		w.args = keeping(`,"timeout":"0s"`)
		w.serve(makeSpark("a", "9", 1), makeSpark("b", "17", 2))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.create(makePod("b-driver", ofSpark("b")))
		w.eventually("one starts for which there is room", func() bool { return w.nodeOf()["a-driver"] != "" })
		w.eventually("the other one is told that there never is", func() bool { return w.toldSpark("b", "there is room for 15 of the 17 members") })
		if held, _ := w.kept(sparkNamed("a")); held != nil {
			t.Errorf("%s is kept", held)
		}
	})
}

// TestANamespaceHasItsShare: more is not kept for its groups, and one that asks for more waits.
func TestANamespaceHasItsShare(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 10)...)
		w.args = strings.Replace(keeping(""), `"namespaceMaxPercent":100`, `"namespaceMaxPercent":40`, 1)
		w.serve(makeSpark("a", "7", 1), makeSpark("b", "4", 2))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("6 of 8 cpu are kept", func() bool { return w.keeps(sparkNamed("a"), 6) })
		w.create(makePod("b-driver", ofSpark("b")))
		w.eventually("another one is told of the share", func() bool {
			return w.toldSpark("b", "3 cpu is to be reserved for members to come, and of the 40% of the cluster that may be reserved for groups of its namespace 2 cpu is left")
		})
		w.create(makePod("a-exec", ofSpark("a"), cores("2")))
		w.eventually("it starts when less is kept for the first one", func() bool { return w.keeps(sparkNamed("b"), 3) })
	})
}

// TestReservationsHaveOneCap: whatever they are for, no more is reserved than a share of the cluster, and those of gangs ahead come first.
func TestReservationsHaveOneCap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 10), makePod("busy", cores("5"), onNode("node-0")))...)
		w.args = strings.Replace(keeping(""), `"maxPercent":100`, `"maxPercent":40`, 1)
		w.serve(makeSpark("a", "7", 2), makeSpark("b", "4", 3))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("6 of 8 cpu are reserved", func() bool { return w.keeps(sparkNamed("a"), 6) })
		w.create(makePod("b-driver", ofSpark("b")))
		w.eventually("another one is told of the share", func() bool {
			return w.toldSpark("b", "3 cpu is to be reserved for members to come, and of the 40% of the cluster that may be reserved in all 2 cpu is left")
		})
		w.create(bornAt(1, makeGroup("big", 1)))
		w.create(makePod("big-0", inGroup("big"), cores("10")))
		w.eventually("resources are reserved for a gang ahead, though it is larger than the share", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.eventually("the gang behind has lost what is more than the share with that", func() bool {
			held, _ := w.kept(sparkNamed("a"))
			return held == nil && w.recorded("ReservationLost of the room that was kept for members to come, 6 cpu has gone to others") == 1
		})
		w.countsRoom("lost")
	})
}

// TestNothingIsReservedWhereNothingMayBe: a gang that starves waits on, and says why.
func TestNothingIsReservedWhereNothingMayBe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("big", 1), makePod("busy", cores("2"), onNode("node-0")), makePod("big-0", inGroup("big"), cores("2")))...)
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","reservations":{"maxPercent":0}}`
		w.start()
		w.eventually("it is told that nothing may be reserved", func() bool {
			known, _ := w.engine().reader.Look(gangNamed("big"))
			return known.Refusal != nil && strings.Contains(known.Refusal.Message, "but no more than 0% of the cluster may be reserved")
		})
		if w.waiting()[news.Reserved] != 0 {
			t.Error("resources are reserved all the same")
		}
	})
}

// TestPlacesForPodsAreShared, too: members that ask for next to nothing take them as others do.
func TestPlacesForPodsAreShared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 2, 10)...)
		w.args = strings.Replace(keeping(""), `"namespaceMaxPercent":100`, `"namespaceMaxPercent":20`, 1)
		a, b := makeSpark("a", "1", 1), makeSpark("b", "1", 2)
		a.SetAnnotations(map[string]string{schedulingv1alpha1.AnnotationExpectedMembers: "31"})
		b.SetAnnotations(map[string]string{schedulingv1alpha1.AnnotationExpectedMembers: "31"})
		w.serve(a, b)
		w.start()
		w.create(makePod("a-driver", ofSpark("a"), cores("10m")))
		w.eventually("30 of 44 places are kept", func() bool {
			_, on := w.kept(sparkNamed("a"))
			return on["node-0"]+on["node-1"] == 30
		})
		w.create(makePod("b-driver", ofSpark("b"), cores("10m")))
		w.eventually("another one is told of the share", func() bool {
			return w.toldSpark("b", "30 pods is to be reserved for members to come, and of the 20% of the cluster that may be reserved for groups of its namespace 14 pods is left")
		})
	})
}

// TestNobodyIsEvictedForMembersToCome, unless the configuration says so.
func TestNobodyIsEvictedForMembersToCome(t *testing.T) {
	for _, preempts := range []bool{false, true} {
		t.Run(fmt.Sprint(preempts), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 8), makePod("low-0", cores("8"), ofPriority(-1), onNode("node-0")),
					makePod("low-1", cores("4"), ofPriority(-1), onNode("node-1")))...)
				w.args = keeping(fmt.Sprintf(`,"preemption":%t`, preempts))
				w.serve(makeSpark("a", "9", 1))
				w.start()
				w.create(makePod("a-driver", ofSpark("a")))
				if preempts {
					w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 8) })
					return
				}
				w.eventually("it waits", func() bool { return w.toldSpark("a", "of the members are still to come, for") })
				if victims := w.victims(); len(victims) > 0 {
					t.Errorf("%v were evicted", victims)
				}
				w.deletePod("low-0")
				w.eventually("it starts when there is room", func() bool { return w.keeps(sparkNamed("a"), 8) })
				if victims := w.victims(); len(victims) > 1 {
					t.Errorf("%v were evicted", victims)
				}
			})
		})
	}
}

// TestMembersThatCameBeforeTheStartAreEvictedFor: nobody is for an executor that is to come, but for one that is
// there, within what the group asks for, as for the driver.
func TestMembersThatCameBeforeTheStartAreEvictedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makePod("low-large", cores("7"), ofPriority(-1), onNode("node-0")),
			makePod("low-small", ofPriority(-1), onNode("node-0")))...)
		w.args = keeping("")
		w.serve(makeSpark("a", "3", 1))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("the driver waits for room for both", func() bool { return w.toldSpark("a", "there is room for 0 of the 3 members") })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("%v were evicted for an executor that is to come", victims)
		}
		w.create(makePod("a-exec", ofSpark("a"), cores("2")))
		w.eventually("both run", func() bool { return w.placed("a-") == 2 })
		if victims := w.victims(); !slices.Equal(victims, []string{"low-large"}) {
			t.Errorf("%v were evicted, want the one that makes room for both", victims)
		}
	})
}

// TestNobodyIsEvictedForAMemberThatComesLater, even if others are for members to come: the gang has its minimum, and
// what was kept went to somebody who is ahead. The member has the next room that there is.
func TestNobodyIsEvictedForAMemberThatComesLater(t *testing.T) {
	for _, preempts := range []bool{false, true} {
		t.Run(fmt.Sprint(preempts), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 8), makePod("low", cores("8"), ofPriority(-1), onNode("node-1")))...)
				w.args = keeping(fmt.Sprintf(`,"preemption":%t`, preempts))
				w.serve(makeSpark("a", "5", 1))
				w.start()
				w.create(makePod("a-driver", ofSpark("a")))
				w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 4) })
				w.create(makePod("higher", cores("7"), ofPriority(1), createdAt(3)))
				w.eventually("one that outranks the gang has that", func() bool { return w.nodeOf()["higher"] == "node-0" })
				w.create(makePod("a-exec", ofSpark("a"), cores("2")))
				w.eventually("the executor is told that it has no room", func() bool { return w.marked("a-exec") == 1 })
				if victims := w.victims(); len(victims) > 0 {
					t.Errorf("%v were evicted", victims)
				}
				w.deletePod("low")
				w.eventually("it has room that becomes free", func() bool { return w.nodeOf()["a-exec"] != "" })
			})
		})
	}
}

// TestTheSubmitterOfARayJobHasItsRoom: KubeRay counts it in minResources and not in minMember, and makes it when the
// cluster of the job is ready. After the end KubeRay replaces the group by one that asks for nothing.
func TestTheSubmitterOfARayJobHasItsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const name = "ray-job-pg"
		w := newWorld(t, makeNodes("node", 1, 3)...)
		w.args = strings.Replace(keeping(""), "{", `{"podGroupAPIs":{"volcano":{"mode":"On"}},`, 1)
		group := makeVolcanoGroup(name, 2)
		ask := func(minMember int64, resources map[string]any) {
			group.Object["spec"] = map[string]any{"minMember": minMember, "queue": "default", "minResources": resources}
		}
		ask(2, map[string]any{"cpu": "3"})
		w.serveDialect(dialect.Volcano, group)
		w.start()
		member := func(name, role string) *corev1.Pod {
			return makePod(name, ofVolcano("ray-job-pg"), func(w *schedulertesting.PodWrapper) { w.Annotation("volcano.sh/task-spec", role) })
		}
		w.create(member("rc-head", "headgroup"))
		w.create(member("rc-worker-0", "workers"))
		key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: name}
		w.eventually("the cluster runs, and room is kept", func() bool { return w.placed("rc-") == 2 && w.keeps(key, 1) })
		w.create(makePod("other"))
		w.eventually("somebody else finds none", func() bool { return w.marked("other") == 1 })
		w.create(member("job-submitter", "submittergroup"))
		w.eventually("the submitter has it", func() bool { return w.nodeOf()["job-submitter"] != "" })
		w.end("job-submitter", corev1.PodSucceeded)
		w.deletePod("rc-head")
		w.deletePod("rc-worker-0")

		client := w.foreign.Resource(dialect.Volcano.Resource()).Namespace(testNamespace)
		group, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ask(0, map[string]any{})
		if _, err := client.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the group is completed", func() bool { return w.phaseOf(dialect.Volcano, name) == dialect.PhaseCompleted })
		if held, _ := w.kept(key); held != nil {
			t.Errorf("%s is kept for a job that is over", held)
		}
	})
}

// TestAGroupOfOursHasRoomKept, too, for as long as it asks: it may ask for less later.
func TestAGroupOfOursHasRoomKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 8), makeGroup("gang", 1, asking("9")), makePod("gang-0", inGroup("gang")))...)
		w.args = keeping("")
		w.start()
		w.eventually("room is kept", func() bool { return w.keeps(gangName, 8) })
		w.changeGroup("gang", func(group *schedulingv1alpha1.PodGroup) { asking("4")(&group.Spec) })
		w.eventually("less is kept", func() bool { return w.keeps(gangName, 3) })
		w.changeGroup("gang", func(group *schedulingv1alpha1.PodGroup) { group.Spec.MinResources = nil })
		w.eventually("nothing is", func() bool { held, _ := w.kept(gangName); return held == nil })
	})
}

// TestRoomGoesWithTheGang: with its group, and with its members.
func TestRoomGoesWithTheGang(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"the group is deleted": func(w *world) {
			if err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Delete(w.t.Context(), "gang", metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
		},
		"its member is deleted": func(w *world) { w.deletePod("gang-0") },
		"its member has ended":  func(w *world) { w.end("gang-0", corev1.PodSucceeded) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 8), makeGroup("gang", 1, asking("9")), makePod("gang-0", inGroup("gang")))...)
				w.args = keeping("")
				w.start()
				w.eventually("room is kept", func() bool { return w.keeps(gangName, 8) })
				end(w)
				w.eventually("nothing is", func() bool { held, _ := w.kept(gangName); return held == nil })
				w.countsRoom("gone")
				w.create(makePod("large", cores("8")))
				w.create(makePod("large-1", cores("7")))
				w.eventually("others have the room", func() bool { return w.placed("large") == 2 })
			})
		})
	}
}

// TestAMemberThatIsLargerThanTheRoomHasOtherRoom.
func TestAMemberThatIsLargerThanTheRoomHasOtherRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeNodes("large", 1, 16), makeGroup("gang", 1, asking("4")), makePod("gang-0", inGroup("gang")))...)
		w.args = keeping("")
		w.start()
		w.eventually("room is kept", func() bool { return w.keeps(gangName, 3) })
		w.create(makePod("gang-1", inGroup("gang"), cores("12")))
		w.eventually("a large member runs", func() bool { return w.nodeOf()["gang-1"] == "large-0" })
		w.eventually("nothing is kept", func() bool { held, _ := w.kept(gangName); return held == nil })
	})
}

// TestAGangWhoseMinimumIsAllHasNothingKept: most tools ask so.
func TestAGangWhoseMinimumIsAllHasNothingKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makeGroup("gang", 3, asking("3")), makeMembers("gang", 3))...)
		w.args = keeping("")
		w.start()
		w.eventually("it runs", func() bool { return w.placed("gang") == 3 })
		if held, _ := w.kept(gangName); held != nil {
			t.Errorf("%s is kept", held)
		}
	})
}

// TestMembersPassAGangThatStarves: it waits for the end of the driver, and the driver for its executors. They
// need not leave the room alone that is held back for it, once.
func TestMembersPassAGangThatStarves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 8)...)
		w.args = keeping("")
		w.serve(makeSpark("a", "5", 2))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept for the driver's executors", func() bool { return w.keeps(sparkNamed("a"), 4) })
		w.create(bornAt(1, makeGroup("big", 1)))
		w.create(makePod("big-0", inGroup("big"), cores("8")))
		w.eventually("resources are reserved for a gang that is ahead", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.create(makePod("a-huge", ofSpark("a"), cores("5")))
		w.eventually("a member waits for which no room was kept", func() bool { return w.toldSpark("a", "no room") })
		w.create(makePod("a-exec", ofSpark("a"), cores("4")))
		w.eventually("the executor runs", func() bool { return w.nodeOf()["a-exec"] != "" })
		if w.nodeOf()["a-huge"] != "" {
			t.Error("the other one has passed, too")
		}
		if w.waiting()[news.Reserved] != 1 {
			t.Error("nothing is reserved any more: the executor has waited for that")
		}
	})
}

// TestAGangThatLacksRoomForMembersToComeStarves as one does that lacks some for those that it has: what becomes free
// is held back until there is enough for all.
func TestAGangThatLacksRoomForMembersToComeStarves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makePod("busy-0", cores("4"), onNode("node-0")), makePod("busy-1", cores("3"), onNode("node-0")))...)
		w.args = keeping("")
		w.serve(makeSpark("a", "8", 1))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("resources are reserved for it, though its driver would fit", func() bool { return w.waiting()[news.Reserved] == 1 })
		w.end("busy-0", corev1.PodSucceeded)
		w.create(makePod("other", cores("2"), createdAt(3)))
		w.eventually("an ordinary Pod leaves it alone", func() bool { return w.marked("other") == 1 })
		w.end("busy-1", corev1.PodSucceeded)
		w.eventually("the gang starts with room for all", func() bool { return w.nodeOf()["a-driver"] != "" && w.keeps(sparkNamed("a"), 7) })
	})
}

// staged has a Pod say that its gang is in stages.
func staged(w *schedulertesting.PodWrapper) {
	w.Annotation(schedulingv1alpha1.AnnotationStaged, "true")
}

// TestAGangInStagesRuns: an initializer alone, and then a node for which room was kept, also when the initializer had
// ended and the node had not come.
func TestAGangInStagesRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2, asking("3")), makePod("gang-0", inGroup("gang"), staged))...)
		w.args = keeping("")
		w.start()
		w.eventually("room is kept for the next stage", func() bool { return w.keeps(gangName, 2) })
		w.create(makePod("other", cores("3"), createdAt(3)))
		w.eventually("an ordinary Pod leaves it alone", func() bool { return w.marked("other") == 1 })
		w.end("gang-0", corev1.PodSucceeded)
		w.create(makePod("another", cores("3"), createdAt(4)))
		w.eventually("another ordinary Pod leaves it alone", func() bool { return w.marked("another") == 1 })
		w.create(makePod("gang-1", inGroup("gang"), staged, cores("2")))
		w.eventually("the next stage runs", func() bool { return w.nodeOf()["gang-1"] != "" })
	})
}

// changeGroup changes a PodGroup.
func (w *world) changeGroup(name string, change func(*schedulingv1alpha1.PodGroup)) {
	w.t.Helper()
	groups := w.lock.SchedulingV1alpha1().PodGroups(testNamespace)
	group, err := groups.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	change(group)
	if _, err := groups.Update(w.t.Context(), group, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestRoomIsKeptInTheDomainOfTheGang, if all members have to be in one.
func TestRoomIsKeptInTheDomainOfTheGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inOneRack := func(spec *schedulingv1alpha1.PodGroupSpec) {
			spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		}
		w := newWorld(t, all(makeNodes("small", 1, 4, "rack=a"), makeNodes("large", 2, 4, "rack=b"), makeNodes("other", 1, 4, "rack=c"),
			makeGroup("gang", 1, asking("7"), inOneRack), makePod("gang-0", inGroup("gang")))...)
		w.args = keeping("")
		w.start()
		w.eventually("room is kept", func() bool { return w.keeps(gangName, 6) })
		w.eventually("the member runs", func() bool { return w.nodeOf()["gang-0"] != "" })
		_, on := w.kept(gangName)
		if node := w.nodeOf()["gang-0"]; !strings.HasPrefix(node, "large") || on["large-0"]+on["large-1"] != 6 {
			t.Errorf("the member is on %s and room is kept on %v, want all in rack b", node, on)
		}
	})
}

// TestMembersAboveTheMinimumAreSpare, though room was kept for them: whoever outranks the gang takes them, and
// leaves the driver, which is the gang.
func TestMembersAboveTheMinimumAreSpare(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 8)...)
		w.args = keeping("")
		w.serve(makeSpark("a", "8", 1))
		w.start()
		w.create(makePod("a-driver", ofSpark("a")))
		w.eventually("room is kept", func() bool { return w.keeps(sparkNamed("a"), 7) })
		w.create(makePod("a-exec", ofSpark("a"), cores("7")))
		w.eventually("the executor runs", func() bool { return w.nodeOf()["a-exec"] != "" })
		w.create(makeGroup("high", 1))
		w.create(makePod("high-0", inGroup("high"), cores("5"), ofPriority(10)))
		w.eventually("a gang that outranks it runs", func() bool { return w.nodeOf()["high-0"] != "" })
		if w.nodeOf()["a-driver"] == "" {
			t.Error("the driver is gone")
		}
	})
}
