// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestMembersThatArePreemptedDoNotCount: from the moment that a gang is preempted
// its victims don't help a sibling that waits over the minimum. They go one by
// one, and the sibling would be all that is left.
func TestMembersThatArePreemptedDoNotCount(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("low", 2))
	victims := []*corev1.Pod{makePod("low-0", inGroup("low"), onNode("node-0")), makePod("low-1", inGroup("low"), onNode("node-0"))}
	sibling := makePod("low-2", inGroup("low"))
	b.add(append(victims, sibling)...)
	low := gangNamed("low")
	if !b.isNext(low) {
		t.Fatal("a member above the minimum has no turn")
	}
	b.setLeaving(victims, true)
	if b.isNext(low) {
		t.Error("a member has a turn whose gang is being preempted")
	} else if got := b.toldWhy(low); got != "1 of at least 2 members exist" {
		t.Errorf("it is told %q", got)
	}
	b.setLeaving(victims, false)
	if !b.isNext(low) {
		t.Error("a member has no turn after the preemption has failed")
	}
}

// preempted is a Pod that is ending because it was preempted.
func preempted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	}}
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	return pod
}

// TestTheLateEndOfASurplusDissolvesNothing: a gang could spare the member that was
// preempted. Until that has ended, the gang loses another one for another reason, whose
// replacement waits.
func TestTheLateEndOfASurplusDissolvesNothing(t *testing.T) {
	b := newBench()
	b.dissolve = func(_ *schedulingv1alpha1.PodGroup, rest []*corev1.Pod) {
		t.Errorf("the rest of the gang is evicted, %d Pods", len(rest))
	}
	b.setGroup(makeGroup("gang", 2))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0")),
		makePod("c", inGroup("gang"), onNode("node-0"))}
	b.add(members...)
	surplus := preempted(members[2])
	b.setPod(surplus)
	b.deletePod(members[1])
	b.add(makePod("d", inGroup("gang")))
	b.deletePod(surplus)
}

// TestASchedulerThatBeginsDissolvesWhatPreemptionHasBroken, and nothing else.
func TestASchedulerThatBeginsDissolvesWhatPreemptionHasBroken(t *testing.T) {
	placed := func(name string) *corev1.Pod { return makePod(name, inGroup("gang"), onNode("node-0")) }
	tests := map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"a gang that preemption has taken a member of": {
			pods: []*corev1.Pod{placed("a"), placed("b"), preempted(placed("c"))}, want: []string{"a", "b"},
		},
		"no gang that could spare it": {
			pods: []*corev1.Pod{placed("a"), placed("b"), placed("c"), preempted(placed("d"))},
		},
		"no gang that would be short of members without the preemption": {
			pods: []*corev1.Pod{placed("a"), preempted(placed("b"))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.synced = false
			var dissolved []string
			b.dissolve = func(_ *schedulingv1alpha1.PodGroup, rest []*corev1.Pod) {
				for _, pod := range rest {
					dissolved = append(dissolved, pod.Name)
				}
			}
			b.setGroup(makeGroup("gang", 3))
			b.add(tc.pods...)
			b.setSynced()
			slices.Sort(dissolved)
			if !slices.Equal(dissolved, tc.want) {
				t.Errorf("%v are evicted, want %v", dissolved, tc.want)
			}
		})
	}
}

// TestPreemptorIsToldOfVictimsThatOthersTook: an ordinary Pod preempts two. While
// it has the first one deleted somebody else deletes the other, and the queue
// looks at the Pod before it turns to that. Nothing else ever happens.
func TestPreemptorIsToldOfVictimsThatOthersTook(t *testing.T) {
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
			w.eventually("the Pod is back in the queue, which has heard of both", func() bool {
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
}

// TestAPodThatTakesTheNameOfAVictimStays: while a victim is about to be evicted it
// ends by itself, and its controller makes another of the same name, which runs
// elsewhere.
func TestAPodThatTakesTheNameOfAVictimStays(t *testing.T) {
	for _, verb := range []string{"patch", "delete"} {
		t.Run("before the "+verb, func(t *testing.T) {
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
			if pod.UID != again.UID || isPreempted(pod) {
				t.Errorf("the Pod of the name has the UID %s, and is marked as preempted: %v; want %s, not marked", pod.UID, isPreempted(pod), again.UID)
			}
		})
	}
}
