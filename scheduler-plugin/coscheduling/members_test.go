// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// phaseKnown is the phase that a member of group gang is known to have.
func (w *world) phaseKnown(uid types.UID) corev1.PodPhase {
	w.t.Helper()
	if pod := w.known("gang").Members[uid].Pod; pod != nil {
		return pod.Status.Phase
	}
	return ""
}

// end has a Pod be in a phase, such as one in which it has ended.
func (w *world) end(name string, phase corev1.PodPhase) {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pod.Status.Phase = phase
	if _, err := w.kube.CoreV1().Pods(testNamespace).UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// deafen has all informers of Pods not hear anything until the result is called.
func (w *world) deafen(wires *wires) (hearAgain func()) {
	var deaf atomic.Bool
	deaf.Store(true)
	w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		// The informer is of all namespaces.
		return deaf.Load() && action.GetNamespace() == "", nil, errors.New("no answer")
	})
	w.kube.Lock()
	wires.cut("pods")
	w.kube.Unlock()
	return func() { deaf.Store(false) }
}

// TestAMemberThatCompletesIsNeverLost: it counts, also if the watch is broken at its end. Another member is placed with it
// then, which would not be without it.
func TestAMemberThatCompletesIsNeverLost(t *testing.T) {
	for name, breaks := range map[string]bool{"the watch shows it": false, "the watch is broken": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
				wires := newWires(&w.kube.Fake, w.kube.Tracker())
				w.start()
				w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
				hearAgain := func() {}
				if breaks {
					hearAgain = w.deafen(wires)
				}
				w.end("gang-0", corev1.PodSucceeded)
				hearAgain()
				w.eventually("it is known to have succeeded", func() bool { return w.phaseKnown("uid-gang-0") == corev1.PodSucceeded })
				w.deletePod("gang-1")
				w.eventually("the other member is known to be lost, and nobody else", func() bool {
					known, _ := w.engine().reader.Look(gangNamed("gang"))
					return known.Deleted == 1 && known.Failed == 0 && known.Placed.Total == 1
				})
				w.create(makePod("gang-2", inGroup("gang")))
				w.eventually("another one takes its place", func() bool { return w.placed("gang-2") == 1 })
				w.deletePod("gang-0")
				w.eventually("it is forgotten", func() bool { return w.known("gang").Members["uid-gang-0"].Pod == nil })
			})
		})
	}
}

// TestANewMemberIsNotPlacedBesideOnesThatHadGone before it came: a gang has succeeded or runs, its Pods are deleted, and others
// come, one after the other, maybe under the same names. The watch of Pods may be broken meanwhile, so that none of the deletions is seen.
func TestANewMemberIsNotPlacedBesideOnesThatHadGone(t *testing.T) {
	for name, tc := range map[string]struct {
		succeeds, breaks bool
		names            string
	}{
		"they had succeeded":                             {succeeds: true, names: "late"},
		"they had succeeded, and the watch is broken":    {succeeds: true, breaks: true, names: "late"},
		"they ran, and the watch is broken":              {breaks: true, names: "late"},
		"others have their names":                        {succeeds: true, names: "gang"},
		"others have their names when the watch is back": {succeeds: true, breaks: true, names: "gang"},
		"they ran, and others have their names":          {breaks: true, names: "gang"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const n = 4
				w := newWorld(t, all(makeNodes("node", 1, n), makeGroup("gang", n), makeMembers("gang", n))...)
				wires := newWires(&w.kube.Fake, w.kube.Tracker())
				w.start()
				w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
				if tc.succeeds {
					for i := range n {
						w.end(fmt.Sprint("gang-", i), corev1.PodSucceeded)
						w.eventually("it is known to have succeeded", func() bool {
							return w.phaseKnown(types.UID(fmt.Sprint("uid-gang-", i))) == corev1.PodSucceeded
						})
					}
				}
				hearAgain := func() {}
				if tc.breaks {
					hearAgain = w.deafen(wires)
				}
				for i := range n {
					w.kube.Lock()
					wires.bury(podResource, testNamespace, fmt.Sprint("gang-", i))
					w.kube.Unlock()
				}
				another := func(i int) *corev1.Pod { return madeAnew(makePod(fmt.Sprint(tc.names, "-", i), inGroup("gang"))) }
				w.create(another(0))
				hearAgain()
				w.eventually("the new member is all that there is", func() bool {
					members := w.known("gang").Members
					return len(members) == 1 && members[another(0).UID].Pod != nil
				})
				for i := 1; i < n; i++ {
					if placed := w.placed(tc.names); placed > 0 {
						t.Errorf("%d of %d members are placed", placed, i)
					}
					w.create(another(i))
				}
				w.eventually("all are placed when all are there", func() bool { return w.placed(tc.names) == n })
			})
		})
	}
}

// TestAMemberThatFailsIsLost: its gang is told apart from one that never had it.
func TestAMemberThatFailsIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.end("gang-0", corev1.PodFailed)
		w.eventually("the gang has a member that failed", func() bool {
			known, _ := w.engine().reader.Look(gangNamed("gang"))
			return known.Failed == 1 && known.Deleted == 0 && known.Placed.Total == 1
		})
	})
}

// TestAMemberThatIsDeletedOutrightIsLost: it has not ended before.
func TestAMemberThatIsDeletedOutrightIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.deletePod("gang-0")
		w.eventually("the gang has lost it", func() bool {
			known, _ := w.engine().reader.Look(gangNamed("gang"))
			return known.Deleted == 1 && known.Failed == 0 && known.Placed.Total == 1
		})
	})
}

// TestAMemberThatEndedBeforeTheSchedulerStartedCounts towards the minimum of its gang.
func TestAMemberThatEndedBeforeTheSchedulerStartedCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2, onNode("node-0")), makePod("gang-2", inGroup("gang")))...)
		w.end("gang-0", corev1.PodSucceeded)
		w.start()
		w.eventually("the third member is placed", func() bool { return w.placed("gang-2") == 1 })
		w.eventually("the first one counts", func() bool {
			known, _ := w.engine().reader.Look(gangNamed("gang"))
			return known.Bound.Total == 3 && known.Deleted == 0
		})
	})
}

// TestPodsAreWatchedOnce for kube-scheduler and the plugin together.
func TestPodsAreWatchedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		watches := 0
		for _, action := range w.kube.Actions() {
			if action.Matches("watch", "pods") {
				watches++
			}
		}
		if watches != 1 {
			t.Errorf("there are %d watches of Pods", watches)
		}
	})
}

// TestALatePodGroupAPITakesNoBindingForAConflict: a Pod was listed to be shown again, as its dialect has come
// on, and got its node before it was shown.
func TestALatePodGroupAPITakesNoBindingForAConflict(t *testing.T) {
	b := newBench(dialect.Volcano)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	b.store = store
	pods := (&watcher{gangs: b.Gangs}).podHandler()
	bound := podOfVolcano(testNamespace, "member", corev1.PodRunning)
	listed := bound.DeepCopy()
	listed.Spec.NodeName, listed.Status.Phase = "", corev1.PodPending
	if err := store.Add(bound); err != nil {
		t.Fatal(err)
	}
	pods.OnUpdate(listed, bound)
	b.SetPodAgain(listed)
	if bound := (gangs.Follower{Of: b.Gangs}).Take().Elsewhere; len(bound) > 0 {
		t.Errorf("%v are taken for bound by another scheduler", bound)
	}
	if all := b.remembered(t); all != 1 {
		t.Errorf("%d members are known, want one", all)
	}

	gone := podOfVolcano(testNamespace, "gone", corev1.PodRunning)
	b.SetPodAgain(gone)
	if all := b.remembered(t); all != 1 {
		t.Errorf("%d members are known, and one of them was gone before it was shown", all)
	}
}

// podOfVolcano is a Pod on a node that names a group of Volcano's.
func podOfVolcano(namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	pod := makePod(name, onNode("node"))
	pod.Namespace, pod.UID, pod.Status.Phase = namespace, types.UID("uid-"+namespace+"-"+name), phase
	pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"}
	return pod
}

// remembered is how many members are known.
func (b *bench) remembered(t *testing.T) (all int) {
	dump, err := gangs.DumpOf(b.Gangs)
	if err != nil {
		t.Fatal(err)
	}
	for _, gang := range dump.Gangs {
		all += len(gang.Members)
	}
	return all
}

// TestAPodThatComesToNameAnotherGangLeavesTheOneThatKnowsIt: it names gangs of two dialects, and the one that comes first is turned on late.
func TestAPodThatComesToNameAnotherGangLeavesTheOneThatKnowsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(b *bench, pods cache.ResourceEventHandler, pod *corev1.Pod) error
		want []dialect.Dialect
	}{
		"it is passed on again": {func(b *bench, _ cache.ResourceEventHandler, pod *corev1.Pod) error { b.SetPodAgain(pod); return nil }, []dialect.Dialect{dialect.SchedulerPlugins}},
		"it changes": {func(_ *bench, pods cache.ResourceEventHandler, pod *corev1.Pod) error {
			pods.OnUpdate(pod, pod)
			return nil
		}, []dialect.Dialect{dialect.SchedulerPlugins}},
		"it is gone before": {func(b *bench, pods cache.ResourceEventHandler, pod *corev1.Pod) error {
			pods.OnDelete(pod)
			err := b.store.Delete(pod)
			b.SetPodAgain(pod)
			return err
		}, nil},
	} {
		for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded} {
			t.Run(fmt.Sprint(name, ", ", phase), func(t *testing.T) {
				b := newBench(dialect.Volcano)
				b.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
				pods := (&watcher{gangs: b.Gangs}).podHandler()
				pod := podOfVolcano(testNamespace, "member", phase)
				pod.Labels = map[string]string{labelsOfSchedulerPlugins[0]: "late"}
				if err := b.store.Add(pod); err != nil {
					t.Fatal(err)
				}
				pods.OnAdd(pod, false)
				b.links.TurnOn(dialect.SchedulerPlugins)
				if err := tc.then(b, pods, pod); err != nil {
					t.Fatal(err)
				}
				dump, err := gangs.DumpOf(b.Gangs)
				if err != nil {
					t.Fatal(err)
				}
				var got []dialect.Dialect
				for key := range dump.Gangs {
					got = append(got, key.Dialect)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("gangs of %v know it, want %v", got, tc.want)
				}
			})
		}
	}
}

// TestAPodThatRunsAgainIsKnown: it had ended, and etcd was restored.
func TestAPodThatRunsAgainIsKnown(t *testing.T) {
	b := newBench(dialect.Volcano)
	pods := (&watcher{gangs: b.Gangs}).podHandler()
	ended, runs := podOfVolcano(testNamespace, "member", corev1.PodFailed), podOfVolcano(testNamespace, "member", corev1.PodRunning)
	pods.OnAdd(ended, true)
	pods.OnUpdate(ended, runs)
	known, _ := b.Look(dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"})
	if known.Placed.Total != 1 {
		t.Errorf("its gang counts %+v", known)
	}
}
