// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// TestPreemptorIsToldOfVictimsThatOthersTook: an ordinary Pod preempts two. While
// it has the first one deleted somebody else deletes the other, and the queue
// looks at the Pod before it cycles to that. Nothing else ever happens.
func TestPreemptorIsToldOfVictimsThatOthersTook(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makePod("ordinary", wholeNode, ofPriority(10)))...)
		var once sync.Once
		w.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			patch := action.(clienttesting.PatchAction)
			name := patch.GetName()
			if name != "a" && name != "b" {
				return false, nil, nil
			}
			gone := false
			once.Do(func() {
				gone = true
				w.finish("a", "b")
				w.meanwhile("the Pod is back in the queue, which has heard of both", func() bool {
					return podsIn(w.sched.Cache.Dump().Nodes) == 0 && len(w.sched.SchedulingQueue.UnschedulablePods()) == 1
				})
			})
			if gone {
				return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
			}
			return false, nil, nil
		})
		w.start()
		w.eventually("the Pod is placed", func() bool { return w.placed("ordinary") == 1 })
	})
}

// wasPreempted says whether a Pod is marked as preempted.
func wasPreempted(pod *corev1.Pod) bool {
	c := kube.ConditionOf(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
}

// TestAPodThatTakesTheNameOfAVictimStays: while a victim is about to be evicted it
// ends by itself, and its controller makes another of the same name, which runs
// elsewhere.
func TestAPodThatTakesTheNameOfAVictimStays(t *testing.T) {
	for _, verb := range []string{"patch", "delete"} {
		t.Run("before the "+verb, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 1), makeNodes("elsewhere", 1, 1, "elsewhere=yes"), makePod("a", onNode("node-0")),
					makeGroup("high", 1), makeMembers("high", 1, ofPriority(10), func(w *schedulertesting.PodWrapper) {
						w.NodeSelector(map[string]string{corev1.LabelHostname: "node-0"})
					}))...)
				again := madeAnew(makePod("a", onNode("elsewhere-0")))
				var once sync.Once
				w.kube.PrependReactor(verb, "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					if named, ok := action.(interface{ GetName() string }); ok && named.GetName() == "a" {
						once.Do(func() {
							w.finish("a")
							if err := w.kube.Tracker().Create(podResource, again, testNamespace); err != nil {
								t.Error(err)
							}
						})
					}
					return false, nil, nil
				})
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("high") == 1 })
				pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil {
					t.Fatalf("the Pod that took the name: %v", err)
				}
				if pod.UID != again.UID || wasPreempted(pod) {
					t.Errorf("the Pod of the name has the UID %s, and is marked as preempted: %v; want %s, not marked", pod.UID, wasPreempted(pod), again.UID)
				}
			})
		})
	}
}

// TestAPodThatSucceedsWhileItIsToBeEvictedKeepsItsResult: the scheduler marks and deletes victims before it hears that one
// of them has succeeded.
func TestAPodThatSucceedsWhileItIsToBeEvictedKeepsItsResult(t *testing.T) {
	for _, verb := range []string{"patch", "delete"} {
		t.Run("before the "+verb, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
					makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
				var once sync.Once
				w.kube.PrependReactor(verb, "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					if named, ok := action.(interface{ GetName() string }); ok && named.GetName() == "a" {
						once.Do(func() {
							object, err := w.kube.Tracker().Get(podResource, testNamespace, "a")
							if err != nil {
								t.Error(err)
								return
							}
							pod := object.(*corev1.Pod).DeepCopy()
							pod.Status.Phase, pod.ResourceVersion = corev1.PodSucceeded, "succeeded"
							if err := w.kube.Tracker().Update(podResource, pod, testNamespace); err != nil {
								t.Error(err)
							}
						})
					}
					return false, nil, nil
				})
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
				w.eventually("the Pod is not marked as preempted", func() bool {
					pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "a", metav1.GetOptions{})
					return err == nil && pod.Status.Phase == corev1.PodSucceeded && !wasPreempted(pod)
				})
				if got := w.victims(); !slices.Equal(got, []string{"b"}) {
					t.Errorf("%v were deleted, want b alone", got)
				}
			})
		})
	}
}

// TestAVictimWhoseDeletionIsRefusedIsLeftAlone: the gang takes the place of another one, and the Pod that
// stays does not say that it was preempted. It is in no bubble of synctest: kube-scheduler tries again to
// delete the Pod as often as the machine lets it, and time would stand still.
func TestAVictimWhoseDeletionIsRefusedIsLeftAlone(t *testing.T) {
	for name, by := range map[string]string{"a gang": "high-0", "an ordinary Pod": "ordinary"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, all(makeNodes("node", 2, 1), makePod("kept", onNode("node-0"), startedAgo(time.Second)),
				makePod("other", onNode("node-1"), startedAgo(time.Hour)))...)
			var tries atomic.Int32
			w.kube.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
				if action.(clienttesting.DeleteAction).GetName() != "kept" {
					return false, nil, nil
				}
				tries.Add(1)
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "kept", errors.New("by a webhook"))
			})
			w.start()
			if by == "ordinary" {
				// Whom kube-scheduler chooses next is its own affair.
				w.create(makePod(by, ofPriority(10)))
			} else {
				w.create(makeGroup("high", 1))
				w.create(makeMembers("high", 1, ofPriority(10))[0])
				w.eventually("the gang has the place of the other Pod", func() bool { return w.nodeOf()[by] == "node-1" })
				if got := tries.Load(); got != 1 {
					t.Errorf("it was tried %d times to delete the Pod, want once", got)
				}
			}
			w.eventually("the Pod that stays is not marked", func() bool {
				pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "kept", metav1.GetOptions{})
				return err == nil && tries.Load() > 0 && !wasPreempted(pod)
			})
		})
	}
}

// TestAGangOfWhichAMemberCanNotBeDeletedIsLeftAlone as a whole.
func TestAGangOfWhichAMemberCanNotBeDeletedIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), makeGroup("low", 2), makeMembers("low", 2, onNode("node-0"), startedAgo(time.Second)),
			makePod("other", onNode("node-1"), startedAgo(time.Hour)), makePod("another", onNode("node-1"), startedAgo(time.Hour)))...)
		w.start()
		w.eventually("the scheduler knows the gang", func() bool { return w.known("low").Placed.Total == 2 })
		refused, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "low-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.engine().evictions.Refused(refused, time.Now().Add(time.Hour))
		w.create(makeGroup("high", 2))
		for _, member := range makeMembers("high", 2, ofPriority(10)) {
			w.create(member)
		}
		w.eventually("the gang has the place of the other Pods", func() bool { return w.placed("high") == 2 })
		if diff := cmp.Diff([]string{"another", "other"}, w.victims()); diff != "" {
			t.Errorf("victims (-want, +got):\n%s", diff)
		}
	})
}

// TestAGangPreemptsAPodThatCouldNotBeDeletedForAnotherGang, as soon as the scheduler may try that again.
func TestAGangPreemptsAPodThatCouldNotBeDeletedForAnotherGang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		// Of all gangs only the first is tried once a minute. That is one for which room is reserved elsewhere.
		w := newWorld(t, all(makeNodes("node", 1, 1, "kind=low"), makeNodes("other", 1, 1, "kind=other"), makePod("low", onNode("node-0")),
			makePod("long", ofPriority(30), onNode("other-0")), makeGroup("first", 1), makeMembers("first", 1, ofPriority(20), selecting("kind", "other")))...)
		w.start()
		refused, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "low", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.engine().evictions.Refused(refused, time.Now().Add(time.Minute))
		w.create(makeGroup("high", 1))
		w.create(makeMembers("high", 1, ofPriority(10), selecting("kind", "low"))[0])
		w.eventually("the gang has the place of the Pod", func() bool { return w.placed("high") == 1 })
	})
}

// TestAGangIsNotLeftInPartByADeletionThatFails: the API server fails for a while when a gang is evicted as a whole, or a webhook
// refuses one of its Pods for two minutes. The gang that wanted the room finds other room meanwhile.
func TestAGangIsNotLeftInPartByADeletionThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		lasts time.Duration
	}{
		"the API server fails":               {apierrors.NewInternalError(errors.New("etcd has no leader")), 5 * time.Second},
		"a webhook refuses the last of them": {apierrors.NewForbidden(corev1.Resource("pods"), "low-2", errors.New("by a webhook")), 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 3), makeGroup("low", 3), makeMembers("low", 3, onNode("node-0"), startedAgo(time.Minute)))...)
				var until atomic.Pointer[time.Time]
				w.kube.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					if action.(clienttesting.DeleteAction).GetName() != "low-2" {
						return false, nil, nil
					}
					until.CompareAndSwap(nil, new(time.Now().Add(c.lasts)))
					if time.Now().Before(*until.Load()) {
						return true, nil, c.err
					}
					return false, nil, nil
				})
				w.start()
				w.eventually("the scheduler knows the gang", func() bool { return w.known("low").Placed.Total == 3 })
				w.create(makeGroup("high", 3))
				for _, m := range makeMembers("high", 3, ofPriority(10)) {
					w.create(m)
				}
				w.eventually("a member can not be deleted", func() bool { return until.Load() != nil })
				for _, node := range makeNodes("other", 1, 3) {
					w.create(node)
				}
				w.eventually("the gang has other room", func() bool { return w.placed("high") == 3 })
				time.Sleep(refusedPause) // of the bubble
				w.eventually("all of the other gang runs, or none", func() bool { return w.placed("low")%3 == 0 })
			})
		})
	}
}

// TestNobodyIsEvictedForAGangThatHasEndedInItsTurn.
func TestNobodyIsEvictedForAGangThatHasEndedInItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")))...)
		var gone atomic.Bool
		w.others = []fwk.Plugin{meddler{sync.OnceFunc(func() {
			if err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Delete(t.Context(), "high", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			w.meanwhile("the scheduler knows that the group is gone", func() bool { return w.known("high").Group == nil })
			gone.Store(true)
		})}}
		w.start()
		w.create(makeGroup("high", 2))
		for _, m := range makeMembers("high", 2, ofPriority(10)) {
			w.create(m)
		}
		w.eventually("the cycle is over", gone.Load)
		time.Sleep(time.Minute)
		if got := w.victims(); len(got) > 0 {
			t.Errorf("%v are evicted", got)
		}
	})
}

// TestAVictimThatEndsByItselfIsNotDeleted, nor does it go on to say that it is preempted: its result stays, and the gang has
// its room all the same.
func TestAVictimThatEndsByItselfIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		var once sync.Once
		w.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			var ended *corev1.Pod
			if action.(clienttesting.PatchAction).GetName() == "b" {
				once.Do(func() { // it is marked as it ends
					ended = makePod("b", onNode("node-0"))
					ended.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{
						{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}}
					if err := w.kube.Tracker().Update(podResource, ended, testNamespace); err != nil {
						t.Error(err)
					}
					w.meanwhile("the scheduler knows its end", func() bool { return podsIn(w.sched.Cache.Dump().Nodes) == 1 })
				})
			}
			return ended != nil, ended, nil
		})
		w.start()
		w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
		if diff := cmp.Diff([]string{"a"}, w.victims()); diff != "" {
			t.Errorf("victims (-want, +got):\n%s", diff)
		}
		w.eventually("the Pod that has ended is not marked", func() bool {
			pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "b", metav1.GetOptions{})
			return err == nil && pod.Status.Phase == corev1.PodSucceeded && !wasPreempted(pod)
		})
	})
}

// TestAllVictimsAreMarkedBeforeTheFirstIsDeleted, once each: by their marks another scheduler knows that they were to go.
func TestAllVictimsAreMarkedBeforeTheFirstIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makeGroup("low", 8), makeMembers("low", 8, onNode("node-0")),
			makeGroup("high", 1), makeMembers("high", 1, ofPriority(10)))...)
		w.start()
		w.eventually("the gang has the place of the other one", func() bool { return w.placed("high") == 1 && len(w.victims()) == 8 })
		marks := 0
		for _, action := range w.kube.Actions() {
			patch, ok := action.(clienttesting.PatchAction)
			if ok && strings.HasPrefix(patch.GetName(), "low-") && strings.Contains(string(patch.GetPatch()), string(corev1.DisruptionTarget)) {
				marks++
			}
			if action.Matches("delete", "pods") && marks != 8 {
				t.Fatalf("a victim is deleted when %d of 8 are marked", marks)
			}
		}
		if marks != 8 {
			t.Errorf("8 victims were marked %d times", marks)
		}
	})
}
