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
)

// volcanoOn has PodGroups of Volcano's be served though no profile is named as its scheduler.
const volcanoOn = `{"initialBackoff":"50ms","maxBackoff":"200ms","dialects":{"volcano":{"mode":"On"}}}`

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
}

// TestAVolcanoMemberThatEndedBeforeTheSchedulerStartedCounts: no watch can select it.
func TestAVolcanoMemberThatEndedBeforeTheSchedulerStartedCounts(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang"), onNode("node-0")), makePod("alone", onNode("node-0")))...)
	w.args = volcanoOn
	w.end("gang-0", corev1.PodSucceeded)
	w.end("alone", corev1.PodSucceeded)
	w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
	w.start()
	w.create(makePod("gang-1", ofVolcano("gang")))
	w.eventually("the other member is bound", func() bool { return slices.Equal(w.bound(), []string{"gang-1"}) })
}

// TestOfOtherPodsThatEndedNamesAreKept, and no more: a cluster has many.
func TestOfOtherPodsThatEndedNamesAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a member of a gang of Volcano's": {makePod("a", ofVolcano("gang")), true},
		"a member that a label names":     {makePod("a", inGroup("gang")), false},
		"an ordinary Pod":                 {makePod("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := keepMembers(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if _, whole := kept.(*corev1.Pod); whole != tc.want {
				t.Errorf("all of it is kept: %t, want %t", whole, tc.want)
			}
			if again, err := keepMembers(kept); err != nil || again != kept {
				t.Errorf("what is kept becomes %v (%v)", again, err)
			}
			if o, ok := kept.(metav1.Object); !ok || o.GetName() != "a" || o.GetNamespace() != testNamespace || o.GetUID() != tc.pod.UID {
				t.Errorf("%v is kept, which is not known for the Pod", kept)
			}
		})
	}
}

// TestAVolcanoMemberThatIsDeletedIsLost: the API server is asked what has become of it.
func TestAVolcanoMemberThatIsDeletedIsLost(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang")), makePod("gang-1", ofVolcano("gang")))...)
	w.args = volcanoOn
	w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
	w.start()
	w.eventually("both are bound", func() bool { return len(w.bound()) == 2 })
	w.end("gang-0", corev1.PodSucceeded)
	w.deletePod("gang-1")
	key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
	w.eventually("one is known to be lost, and the other one to have succeeded", func() bool {
		known, _ := w.engine().gangs.Look(key)
		return known.Deleted == 1 && known.Placed.Total == 1 && known.Census.Exist == 1
	})
}

// TestAVolcanoGroupComesLater, with its kind, and another one after that: whoever has ended before
// counts.
func TestAVolcanoGroupComesLater(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang"), onNode("node-0")), makePod("gang-1", ofVolcano("gang")))...)
	w.args = volcanoOn
	w.end("gang-0", corev1.PodSucceeded)
	w.start()
	w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
	w.eventually("the other member is bound", func() bool { return slices.Equal(w.bound(), []string{"gang-1"}) })
}

// TestPodsThatNameAVolcanoGroupAreOrdinary where no profile is named as Volcano's scheduler: its
// groups are somebody else's.
func TestPodsThatNameAVolcanoGroupAreOrdinary(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", ofVolcano("gang")))...)
	w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 2))
	w.start()
	w.eventually("the Pod is bound by itself", func() bool { return slices.Equal(w.bound(), []string{"gang-0"}) })
	if phase := w.phaseOf(dialect.Volcano, "gang"); phase != "" {
		t.Errorf("the phase %s was written", phase)
	}
}

// TestAPodMayNameItsGroupLater: Volcano's controllers patch the annotation in.
func TestAPodMayNameItsGroupLater(t *testing.T) {
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
		known, _ := w.engine().gangs.Look(key)
		return known.Waiting.Total == 1
	})
}
