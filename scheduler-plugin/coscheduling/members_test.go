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
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
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

// TestAMemberThatCompletesIsNeverLost: it counts, whichever of the two watches stands still
// at its end. Another member is placed with it then, which would not be without it.
func TestAMemberThatCompletesIsNeverLost(t *testing.T) {
	for _, broken := range []string{"", livingPods, endedPods} {
		t.Run("broken: "+broken, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
				wires := newWires(&w.kube.Fake, w.kube.Tracker(), w.selections)
				var deaf atomic.Bool
				w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					// The informers are of all namespaces.
					return deaf.Load() && action.GetNamespace() == "", nil, errors.New("no answer")
				})
				w.start()
				w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
				if broken != "" {
					deaf.Store(true)
					w.kube.Lock()
					wires.cut(broken)
					w.kube.Unlock()
				}
				w.end("gang-0", corev1.PodSucceeded)
				w.eventually("it is known to have succeeded", func() bool { return w.phaseKnown("uid-gang-0") == corev1.PodSucceeded })
				deaf.Store(false)
				w.deletePod("gang-1")
				w.eventually("the other member is known to be lost, and nobody else", func() bool {
					known, _ := w.engine().gangs.Look(gangNamed("gang"))
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

// TestANewMemberIsNotPlacedBesideOnesThatHadGone before it came: a gang has succeeded, its Pods are deleted, and another
// one comes. The watch of ended Pods does not tell of the deletions.
func TestANewMemberIsNotPlacedBesideOnesThatHadGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 4
		w := newWorld(t, all(makeNodes("node", 1, n), makeGroup("gang", n), makeMembers("gang", n))...)
		wires := newWires(&w.kube.Fake, w.kube.Tracker(), w.selections)
		var deaf atomic.Bool
		w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			return deaf.Load() && action.GetNamespace() == "", nil, errors.New("no answer")
		})
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		for i := range n {
			w.end(fmt.Sprint("gang-", i), corev1.PodSucceeded)
		}
		w.eventually("all are known to have succeeded", func() bool {
			for i := range n {
				if w.phaseKnown(types.UID(fmt.Sprint("uid-gang-", i))) != corev1.PodSucceeded {
					return false
				}
			}
			return true
		})
		deaf.Store(true)
		w.kube.Lock()
		wires.cut(endedPods)
		w.kube.Unlock()
		for i := range n {
			w.deletePod(fmt.Sprint("gang-", i))
		}
		w.create(makePod("late-0", inGroup("gang")))
		w.eventually("the new member is all that there is", func() bool {
			members := w.known("gang").Members
			return len(members) == 1 && members["uid-late-0"].Pod != nil
		})
		for i := 1; i < n; i++ {
			if placed := w.placed("late"); placed > 0 {
				t.Errorf("%d of %d members are placed", placed, i)
			}
			w.create(makePod(fmt.Sprint("late-", i), inGroup("gang")))
		}
		w.eventually("all are placed when all are there", func() bool { return w.placed("late") == n })
	})
}

// TestARetriedTaskAsksForNobody: its Framework deletes none of the other Pods, and it has its place without a question
// whether those that have succeeded are there.
func TestARetriedTaskAsksForNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ofAttempt := func(attempt string) podOption {
			return func(pod *schedulertesting.PodWrapper) {
				pod.OwnerReferences = attemptOwner("uid-of-attempt")
				pod.Annotation(frameworkv1.KeyTaskAttemptID, attempt)
			}
		}
		group := makeGroup("gang", 2)
		group.OwnerReferences = attemptOwner("uid-of-attempt")
		w := newWorld(t, all(makeNodes("node", 1, 2), group, makeMembers("gang", 2, ofAttempt("0")))...)
		var asked atomic.Int32
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.end("gang-0", corev1.PodSucceeded)
		w.end("gang-1", corev1.PodFailed)
		w.eventually("both are known to have ended", func() bool {
			return w.phaseKnown("uid-gang-0") == corev1.PodSucceeded && w.phaseKnown("uid-gang-1") == corev1.PodFailed
		})
		w.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			asked.Add(1)
			return false, nil, nil
		})
		w.deletePod("gang-1")
		w.eventually("the one that has failed is gone", func() bool { return w.phaseKnown("uid-gang-1") == "" })
		w.create(madeAnew(makePod("gang-1", inGroup("gang"), ofAttempt("1"))))
		w.eventually("its task runs again", func() bool { return w.placed("gang-1") == 1 })
		if n := asked.Load(); n > 0 {
			t.Errorf("the API server was asked for %d Pods", n)
		}
	})
}

// TestAMemberThatFailsIsLost: its gang is told apart from one that never had it.
func TestAMemberThatFailsIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.end("gang-0", corev1.PodFailed)
		w.eventually("the gang has a member that failed", func() bool {
			known, _ := w.engine().gangs.Look(gangNamed("gang"))
			return known.Failed == 1 && known.Deleted == 0 && known.Placed.Total == 1
		})
	})
}

// TestAMemberThatIsDeletedOutrightIsLost: no watch tells that it has not ended.
func TestAMemberThatIsDeletedOutrightIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.deletePod("gang-0")
		w.eventually("the gang has lost it", func() bool {
			known, _ := w.engine().gangs.Look(gangNamed("gang"))
			return known.Deleted == 1 && known.Failed == 0 && known.Placed.Total == 1
		})
	})
}

// TestAMemberThatEndsWhileTheSchedulerStartsCounts: the lists that the scheduler begins with
// are of different moments. A member ends between them.
func TestAMemberThatEndsWhileTheSchedulerStartsCounts(t *testing.T) {
	for name, before := range map[string]bool{"before both lists": true, "between them": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2, onNode("node-0")), makePod("gang-2", inGroup("gang")))...)
				if before {
					w.end("gang-0", corev1.PodSucceeded)
				}
				var lists []string
				w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					list := action.(clienttesting.ListActionImpl)
					if list.GetNamespace() != "" {
						return false, nil, nil // it is the test's own
					}
					kind := livingPods
					if list.ListOptions.FieldSelector == kube.EndedPods {
						kind = endedPods
						if version := list.ListOptions.ResourceVersion; version != "" {
							t.Errorf("the Pods that have ended are listed as of version %s, want the newest", version)
						}
					}
					if lists = append(lists, kind); len(lists) == 2 && !before {
						// The lock of the fake API server is held.
						object, err := w.kube.Tracker().Get(podResource, testNamespace, "gang-0")
						if err != nil {
							return true, nil, err
						}
						pod := object.(*corev1.Pod).DeepCopy()
						pod.Status.Phase = corev1.PodSucceeded
						if err := w.kube.Tracker().Update(podResource, pod, testNamespace); err != nil {
							return true, nil, err
						}
					}
					return false, nil, nil
				})
				w.start()
				w.eventually("the third member is placed", func() bool { return w.placed("gang-2") == 1 })
				w.eventually("the first one counts", func() bool {
					known, _ := w.engine().gangs.Look(gangNamed("gang"))
					return known.Bound.Total == 3 && known.Deleted == 0
				})
				w.kube.Lock()
				defer w.kube.Unlock()
				if want := []string{livingPods, endedPods}; !slices.Equal(lists, want) {
					t.Errorf("the lists are of %q, want %q: a Pod that ends between them could be in neither", lists, want)
				}
			})
		})
	}
}

// TestAMemberIsWatchedOnce: the watch of Pods that have ended shows nothing of those that
// wait, are bound and run, however often they change.
func TestAMemberIsWatchedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 20
		w := newWorld(t, all(makeNodes("node", 1, n), makeGroup("gang", n))...)
		w.start()
		for _, member := range makeMembers("gang", n) {
			w.create(member)
		}
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.eventually("all bindings are seen", func() bool {
			known, _ := w.engine().gangs.Look(gangNamed("gang"))
			return known.Bound.Total == n
		})
		shown := w.selections.count()
		if shown[livingPods] != 2*n || shown[endedPods] != 0 {
			t.Errorf("%d Pods created and bound were shown %d times by the watch of living Pods and %d times by that of ended ones, want %d and 0",
				n, shown[livingPods], shown[endedPods], 2*n)
		}
		w.end("gang-0", corev1.PodSucceeded)
		w.eventually("its end is seen", func() bool { return w.phaseKnown("uid-gang-0") == corev1.PodSucceeded })
		w.eventually("by both watches, once each", func() bool {
			shown := w.selections.count()
			return shown[livingPods] == 2*n+1 && shown[endedPods] == 1
		})
	})
}

// TestALateDialectTakesNoBindingForARivals: a Pod was listed to be shown again, as its dialect has come
// on, and got its node before it was shown.
func TestALateDialectTakesNoBindingForARivals(t *testing.T) {
	b := newBench(dialect.Volcano)
	m := newMembers(b.Gangs, fake.NewSimpleClientset(), nil)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	bound := podOfVolcano(testNamespace, "member", corev1.PodRunning)
	listed := bound.DeepCopy()
	listed.Spec.NodeName, listed.Status.Phase = "", corev1.PodPending
	if err := store.Add(bound); err != nil {
		t.Fatal(err)
	}
	m.living().OnUpdate(listed, bound)
	m.showAgain(store, listed)
	if len(b.elsewhere) > 0 {
		t.Errorf("%v are taken for bound by somebody else", b.elsewhere)
	}
	if all, _ := b.remembered(t); all != 1 {
		t.Errorf("%d members are known, want one", all)
	}

	gone := podOfVolcano(testNamespace, "gone", corev1.PodRunning)
	m.showAgain(store, gone)
	if all, _ := b.remembered(t); all != 1 {
		t.Errorf("%d members are known, and one of them was gone before it was shown", all)
	}
}
