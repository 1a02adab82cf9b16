// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// volcanoOn has PodGroups of Volcano's be served though no profile is named as its scheduler.
const volcanoOn = `{"initialBackoff":"50ms","maxBackoff":"200ms","podGroupAPIs":{"volcano":{"mode":"On"}}}`

// ofVolcano has a Pod name a group of Volcano's.
func ofVolcano(group string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", group) }
}

func makeVolcanoGroup(name string, minMember int64) *unstructured.Unstructured {
	return makeForeignGroup(dialect.Volcano, name, minMember)
}

// TestAVolcanoGangIsPlacedWhole. Its group lets Pods be created before there are any, and
// says how far it is.
func TestAVolcanoGangIsPlacedWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 4)...)
		w.args = volcanoOn
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		phase := func() string { return w.phaseOf(dialect.Volcano, "gang") }
		w.eventually("Pods may be created", func() bool { return phase() == dialect.PhaseInqueue })
		w.create(makePod("gang-0", ofVolcano("gang")))
		w.create(makePod("alone"))
		w.eventually("an ordinary Pod is bound", func() bool { return slices.Equal(w.bound(), []string{"alone"}) })
		w.create(makePod("gang-1", ofVolcano("gang")))
		w.eventually("both are bound", func() bool { return slices.Equal(w.bound(), []string{"alone", "gang-0", "gang-1"}) })
		w.eventually("the group runs", func() bool { return phase() == dialect.PhaseRunning })
		w.end("gang-0", corev1.PodSucceeded)
		w.end("gang-1", corev1.PodFailed)
		w.eventually("the group is completed", func() bool { return phase() == dialect.PhaseCompleted })
	})
}

// TestAGroupThatNoPodNamesIsClaimed before there are any, or not before a Pod of this scheduler's names it, as the
// configuration has it.
func TestAGroupThatNoPodNamesIsClaimed(t *testing.T) {
	for claim, early := range map[string]bool{"All": true, "None": false} {
		t.Run(claim, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("other-0", ofVolcano("other")))...)
				w.args = `{"podGroupAPIs":{"volcano":{"mode":"On","claim":"` + claim + `"}}}`
				w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2), makeVolcanoGroup("other", 2))
				w.start()
				w.eventually("a group that has a Pod says so", func() bool { return w.phaseOf(dialect.Volcano, "other") == dialect.PhaseInqueue })
				if !early {
					if phase := w.phaseOf(dialect.Volcano, "gang"); phase != "" {
						t.Errorf("the phase %s was written to a group that nobody says is ours", phase)
					}
					w.create(makePod("gang-0", ofVolcano("gang")))
				}
				w.eventually("the other one does", func() bool { return w.phaseOf(dialect.Volcano, "gang") == dialect.PhaseInqueue })
			})
		})
	}
}

// TestASchedulerThatDoesNotLeadWritesNoGroupOfVolcanos: of two replicas one does.
func TestASchedulerThatDoesNotLeadWritesNoGroupOfVolcanos(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 4)...)
		w.args = volcanoOn
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		lead := w.standBy()
		w.eventually("the standby has seen the group", func() bool {
			dump, err := gangs.DumpOf(w.engine().gangs)
			return err == nil && dump.Gangs[dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}].Group != nil
		})
		if phase := w.phaseOf(dialect.Volcano, "gang"); phase != "" {
			t.Errorf("the standby has written the phase %s", phase)
		}
		lead()
		w.eventually("the leader writes it", func() bool { return w.phaseOf(dialect.Volcano, "gang") == dialect.PhaseInqueue })
	})
}

// TestGroupsOfTwoKindsMayHaveOneName: each waits for its own members.
func TestGroupsOfTwoKindsMayHaveOneName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ofSchedulerPlugins := labelled("scheduling.x-k8s.io/pod-group", "gang")
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("x-0", ofSchedulerPlugins), makePod("v-0", ofVolcano("gang")))...)
		w.args = volcanoOn
		w.serve(makeOtherGroup("gang", 2))
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		w.eventually("each lacks a member", func() bool {
			return w.phaseOfOther("gang") == dialect.PhasePending && w.phaseOf(dialect.Volcano, "gang") == dialect.PhaseInqueue
		})
		w.create(makePod("v-1", ofVolcano("gang")))
		w.eventually("one of them is bound", func() bool { return slices.Equal(w.bound(), []string{"v-0", "v-1"}) })
		w.create(makePod("x-1", ofSchedulerPlugins))
		w.eventually("the other one is", func() bool { return len(w.bound()) == 4 })
	})
}

// TestAVolcanoMemberThatEndedBeforeTheSchedulerStartedCounts: no watch can select it.
func TestAVolcanoMemberThatEndedBeforeTheSchedulerStartedCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang"), onNode("node-0")), makePod("alone", onNode("node-0")))...)
		w.args = volcanoOn
		w.end("gang-0", corev1.PodSucceeded)
		w.end("alone", corev1.PodSucceeded)
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		w.create(makePod("gang-1", ofVolcano("gang")))
		w.eventually("the other member is bound", func() bool { return slices.Equal(w.bound(), []string{"gang-1"}) })
	})
}

// TestOfWhichEndedPodsNamesAloneAreKept: a cluster has many.
func TestOfWhichEndedPodsNamesAloneAreKept(t *testing.T) {
	links := &dialect.Links{} // a dialect may be turned on later
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a member of a gang of Volcano's": {makePod("a", ofVolcano("gang")), true},
		"a member that a label names":     {makePod("a", inGroup("gang")), true},
		"an ordinary Pod":                 {makePod("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if links.MayBeMember(tc.pod) != tc.want {
				t.Errorf("it may be a member: %t", !tc.want)
			}
		})
	}
}

// TestAVolcanoMemberThatIsDeletedIsLost: the API server is asked what has become of it.
func TestAVolcanoMemberThatIsDeletedIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang")), makePod("gang-1", ofVolcano("gang")))...)
		w.args = volcanoOn
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		w.eventually("both are bound", func() bool { return len(w.bound()) == 2 })
		w.end("gang-0", corev1.PodSucceeded)
		w.deletePod("gang-1")
		key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
		w.eventually("one is known to be lost, and the other one to have succeeded", func() bool {
			known, _ := w.engine().reader.Look(key)
			return known.Deleted == 1 && known.Placed.Total == 1 && known.Census.Exist == 1
		})
	})
}

// TestAVolcanoGroupComesLater: a member that has ended before counts.
func TestAVolcanoGroupComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang"), onNode("node-0")), makePod("gang-1", ofVolcano("gang")))...)
		w.args = volcanoOn
		w.end("gang-0", corev1.PodSucceeded)
		w.serveDialect(dialect.Volcano)
		w.start()
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.eventually("the other member is bound", func() bool { return slices.Equal(w.bound(), []string{"gang-1"}) })
	})
}

// TestPodsThatNameAVolcanoGroupAreOrdinary where no profile is named as Volcano's scheduler: its
// groups are somebody else's.
func TestPodsThatNameAVolcanoGroupAreOrdinary(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang")))...)
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		w.eventually("the Pod is bound by itself", func() bool { return slices.Equal(w.bound(), []string{"gang-0"}) })
		if phase := w.phaseOf(dialect.Volcano, "gang"); phase != "" {
			t.Errorf("the phase %s was written", phase)
		}
	})
}

// TestAPodMayNameItsGroupLater: Volcano's controllers patch the annotation in.
func TestAPodMayNameItsGroupLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makePod("gang-0", plusCores("1")))...)
		w.args = volcanoOn
		w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
		w.start()
		w.eventually("it finds no room", func() bool { return w.marked("gang-0") == 1 })
		pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "gang-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"}
		if _, err := w.kube.CoreV1().Pods(testNamespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
		w.eventually("it is a member", func() bool {
			known, _ := w.engine().reader.Look(key)
			return known.Waiting.Total == 1
		})
	})
}

// TestAVolcanoGangThatAsksForATier is placed in one domain of it, or not at all if no label stands for
// that: then its group and its Pods are told.
func TestAVolcanoGangThatAsksForATier(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		near := func(name string, tier int64) *unstructured.Unstructured {
			group := makeVolcanoGroup(name, 2)
			group.Object["spec"].(map[string]any)["networkTopology"] = map[string]any{"mode": "hard", "highestTierAllowed": tier}
			return group
		}
		w := newWorld(t, all(makeNodes("a", 1, 1, "rack=a"), makeNodes("b", 2, 1, "rack=b"),
			makePod("far-0", ofVolcano("far")), makePod("far-1", ofVolcano("far")))...)
		w.args = `{"podGroupAPIs":{"volcano":{"mode":"On","tiers":[{"tier":1,"key":"rack"}]}}}`
		w.serveDialect(dialect.Volcano, near("near", 1), near("far", 2))
		w.start()
		w.eventually("the Pods of one are told what is in the way", func() bool {
			return w.scheduledCondition("far-0").Reason == dialect.ReasonNotSupported && w.scheduledCondition("far-1").Reason == dialect.ReasonNotSupported
		})
		w.eventually("and so is its group", func() bool {
			return w.recorded("Unschedulable 2/2 tasks in gang unschedulable: the networkTopology asks for one domain of tier 2") == 1
		})
		w.create(makePod("near-0", ofVolcano("near")))
		w.create(makePod("near-1", ofVolcano("near")))
		w.eventually("the other one is placed in one rack", func() bool { return w.nodeOf()["near-0"] != "" && w.nodeOf()["near-1"] != "" })
		for _, name := range []string{"near-0", "near-1"} {
			if node := w.nodeOf()[name]; node == "a-0" {
				t.Errorf("%s is on %s, alone in its rack", name, node)
			}
		}
	})
}

// TestAPodThatNamesTwoGroupsIsTold which of them counts, whatever names it, and whether or not it waits
// for its gang.
func TestAPodThatNamesTwoGroupsIsTold(t *testing.T) {
	asked := func(w *schedulertesting.PodWrapper) {
		w.Annotation("scheduling.lockstep.dev/group", "ring").Annotation("scheduling.lockstep.dev/min-member", "2")
	}
	light := func(w *schedulertesting.PodWrapper) {
		w.Label("pod-group.scheduling.sigs.k8s.io/name", "light").Label("pod-group.scheduling.sigs.k8s.io/min-available", "2")
	}
	kueue := func(w *schedulertesting.PodWrapper) { w.Label("kueue.x-k8s.io/pod-group-name", "theirs") }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string // empty for nothing
		runs bool
	}{
		"Lockstep's and Volcano's":             {pod: makePod("gang-0", inGroup("own"), ofVolcano("gang")), want: "own and of no other, so gang of scheduling.volcano.sh means nothing"},
		"a gang of Kubernetes and Volcano's":   {pod: makePod("gang-0", inNative("native"), ofVolcano("gang")), want: "native of scheduling.k8s.io and of no other, so gang of scheduling.volcano.sh means nothing"},
		"an ordinary group and Volcano's":      {pod: makePod("gang-0", inNative("loose"), ofVolcano("gang")), want: "loose of scheduling.k8s.io and of no other, so gang of scheduling.volcano.sh means nothing", runs: true},
		"Lockstep's and one by a rule":         {pod: makePod("gang-0", inGroup("own"), asked), want: "own and of no other, so group/ring"},
		"two by rules":                         {pod: makePod("gang-0", asked, light), want: "group/ring and of no other, so light of scheduling.x-k8s.io"},
		"Lockstep's and one that Kueue counts": {pod: makePod("gang-0", inGroup("own"), kueue)},
		"one by a rule alone":                  {pod: makePod("gang-0", asked)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("own", 2), tc.pod)...)
				w.args = `{"podGroupAPIs":{"volcano":{"mode":"On"},"schedulerPlugins":{"mode":"Off"}},"groupingRules":["Annotations","MinAvailable","KueuePods"]}`
				w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 1))
				w.serveDialect(native, makeNative(t, "native", gangOf(2)), makeNative(t, "loose", basic))
				w.start()
				if tc.want != "" {
					w.eventually("it is told", func() bool {
						return w.recorded("SeveralPodGroups the Pod names several PodGroups: it is a member of "+tc.want) == 1
					})
				}
				w.create(makePod("last"))
				w.eventually("others are placed", func() bool { return w.placed("last") == 1 })
				w.eventually("it runs if nothing keeps it", func() bool { return !tc.runs || w.placed("gang-0") == 1 })
				if tc.want == "" && w.recorded("SeveralPodGroups") > 0 {
					t.Error("it is told that it names several")
				}
			})
		})
	}
}

// TestAPodWithoutAGroupWaitsForOne, if it names the scheduler of Volcano and the configuration says so:
// Volcano's controllers make the group, and write the annotation.
func TestAPodWithoutAGroupWaitsForOne(t *testing.T) {
	named := func(w *schedulertesting.PodWrapper) { w.SchedulerName("volcano") }
	for policy, waits := range map[string]bool{"Wait": true, "Schedule": false} {
		t.Run(policy, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("unlinked", named))...)
				w.name, w.args = "volcano", `{"podGroupAPIs":{"volcano":{"unlinkedPods":"`+policy+`"}}}`
				w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 1))
				w.start()
				if !waits {
					w.eventually("it is bound by itself", func() bool { return slices.Equal(w.bound(), []string{"unlinked"}) })
					return
				}
				w.create(makePod("linked", named, ofVolcano("gang")))
				w.eventually("a member is bound", func() bool { return len(w.bound()) > 0 })
				if bound := w.bound(); !slices.Equal(bound, []string{"linked"}) {
					t.Errorf("%v are bound, and one of them names no group", bound)
				}
				pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "unlinked", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"}
				if _, err := w.kube.CoreV1().Pods(testNamespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.eventually("it is bound when it names one", func() bool { return len(w.bound()) == 2 })
			})
		})
	}
}

// asksFor is a group of Volcano's with minResources of cores.
func asksFor(name string, minMember int64, cores string) *unstructured.Unstructured {
	group := makeVolcanoGroup(name, minMember)
	group.Object["spec"].(map[string]any)["minResources"] = map[string]any{"cpu": cores}
	return group
}
