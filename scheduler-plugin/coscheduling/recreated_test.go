// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// madeAnew is another Pod of the same name.
func madeAnew(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.UID += "-anew"
	pod.ResourceVersion = string(pod.UID)
	return pod
}

// TestAPodThatWasMadeAnewIsOneMember: while a watch was broken a Pod was deleted and
// created again. The informer tells of both in one update, and the gang still lacks
// a member.
func TestAPodThatWasMadeAnewIsOneMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makeMembers("gang", 1))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		again := madeAnew(makePod("gang-0", inGroup("gang")))
		if err := w.kube.Tracker().Update(podResource, again, testNamespace); err != nil {
			t.Fatal(err)
		}
		w.eventually("the Pod is known to the gang and to the queue, and the one before is not", func() bool {
			members := w.known("gang").Members
			known := members[again.UID].Pod != nil && len(members) == 1
			waiting, _ := w.sched.SchedulingQueue.PendingPods()
			return known && len(waiting) == 1 && waiting[0].UID == again.UID
		})
		if n := w.placed("gang"); n != 0 {
			t.Errorf("%d members of an incomplete gang are placed", n)
		}
		w.create(makePod("gang-1", inGroup("gang")))
		w.eventually("the complete gang is placed", func() bool { return w.placed("gang") == 2 })
	})
}

// lateForPods makes kube-scheduler's handler of Pods wait when a Pod has been made anew.
type lateForPods struct {
	internalcache.Cache
	until <-chan struct{}
}

func (c lateForPods) UpdatePodGroupMember(logger klog.Logger, before, after *corev1.Pod) {
	if before.UID != after.UID {
		<-c.until
	}
	c.Cache.UpdatePodGroupMember(logger, before, after)
}

// TestAPodThatWasMadeAnewAndPlacedLeavesNoMemberBehind: kube-scheduler's handler of Pods is late, and hears of the new
// Pod when its gang has been placed.
func TestAPodThatWasMadeAnewAndPlacedLeavesNoMemberBehind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeMembers("gang", 1))...)
		w.start()
		w.eventually("kube-scheduler and the gang know the member", func() bool {
			return w.queued("gang-0") && w.known("gang").Members["uid-gang-0"].Pod != nil
		})
		synctest.Wait()
		until := make(chan struct{})
		w.sched.Cache = lateForPods{w.sched.Cache, until}
		if err := w.kube.Tracker().Update(podResource, madeAnew(makePod("gang-0", inGroup("gang"))), testNamespace); err != nil {
			t.Fatal(err)
		}
		w.create(makeGroup("gang", 1))
		w.eventually("the new Pod is placed", func() bool { return w.placed("gang-0") == 1 })
		close(until)
		w.eventually("no member waits", func() bool { return len(w.engine().queue.Members()) == 0 })
	})
}

// TestADeletionThatWasMissedIsOne: the informer finds a Pod and a PodGroup gone when
// it lists them anew.
func TestADeletionThatWasMissedIsOne(t *testing.T) {
	b := newBench()
	group, pod := makeGroup("gang", 1), makePod("a", inGroup("gang"))
	w := &watcher{gangs: b.Gangs}
	pods := w.podHandler()
	groups := w.kinds(configv1alpha1.PodGroupAPIs{})[0].hearing()
	groups.OnAdd(group, false)
	pods.OnAdd(pod, false)
	pods.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod})
	if known, _ := b.Look(gangName); known.Waiting.Total != 0 {
		t.Error("the Pod is still known")
	}
	groups.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/gang", Obj: group})
	if _, known := b.Look(gangName); known {
		t.Error("the gang is still known")
	}
}

// TestAPodThatLosesItsNodeEndsNoScheduler: a watch was broken, and what the informer takes for a
// change of a Pod is another Pod, or one of an API server whose store was restored.
func TestAPodThatLosesItsNodeEndsNoScheduler(t *testing.T) {
	waits := func(pod *corev1.Pod) *corev1.Pod { pod.Spec.NodeName = ""; return pod }
	elsewhere := func(pod *corev1.Pod) *corev1.Pod { pod.Spec.NodeName = "node-1"; return pod }
	tests := map[string]struct {
		change  func(*corev1.Pod) *corev1.Pod
		options []podOption
	}{
		"another Pod waits":                 {change: func(pod *corev1.Pod) *corev1.Pod { return waits(madeAnew(pod)) }},
		"another Pod is on another node":    {change: func(pod *corev1.Pod) *corev1.Pod { return elsewhere(madeAnew(pod)) }},
		"it waits again":                    {change: waits},
		"it is on another node":             {change: elsewhere},
		"a member waits again":              {change: waits, options: []podOption{inGroup("gang")}},
		"another Pod waits for the member":  {change: func(pod *corev1.Pod) *corev1.Pod { return waits(madeAnew(pod)) }, options: []podOption{inGroup("gang")}},
		"another member is on another node": {change: func(pod *corev1.Pod) *corev1.Pod { return elsewhere(madeAnew(pod)) }, options: []podOption{inGroup("gang")}},
		"another Pod waits that is no member": {change: func(pod *corev1.Pod) *corev1.Pod {
			delete(pod.Labels, schedulingv1alpha1.LabelPodGroup)
			return waits(madeAnew(pod))
		}, options: []podOption{inGroup("gang")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 1), makeGroup("gang", 1), makePod("pod", append(tc.options, onNode("node-0"))...))...)
				w.start()
				after := tc.change(makePod("pod", append(tc.options, onNode("node-0"))...))
				after.ResourceVersion = "changed"
				if err := w.kube.Tracker().Update(podResource, after, testNamespace); err != nil {
					t.Fatal(err)
				}
				w.eventually("it has a node", func() bool { return w.placed("pod") == 1 })
				w.create(makePod("other"))
				w.eventually("the other node has room for another Pod, and just for one", func() bool { return w.placed("other") == 1 })
				w.eventually("the cache has just the Pods that there are", func() bool {
					pods := 0
					dump := w.sched.Cache.Dump()
					for _, node := range dump.Nodes {
						pods += len(node.GetPods())
					}
					return pods == 2 && len(dump.AssumedPods) == 0
				})
			})
		})
	}
}
