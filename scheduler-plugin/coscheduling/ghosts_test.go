// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// TestAMemberOfWhichNobodyHearsTakesNoRoomOnceItIsGone: a member waits, and the watch of
// Pods breaks. Then its gang is placed, and the member goes. When the watch is there
// again the next gang finds the room.
func TestAMemberOfWhichNobodyHearsTakesNoRoomOnceItIsGone(t *testing.T) {
	for name, anew := range map[string]bool{"it is missed": false, "another Pod has its name": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, makeNodes("node", 1, 2)...)
				wires := newWires(&w.kube.Fake, w.kube.Tracker())
				var deaf atomic.Bool
				w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					// The informer is of all namespaces.
					return deaf.Load() && action.GetNamespace() == "", nil, errors.New("no answer")
				})
				w.start()
				w.create(makePod("gang-0", inGroup("gang")))
				w.eventually("kube-scheduler and the gang know the member", func() bool {
					return w.queued("gang-0") && w.known("gang").Members["uid-gang-0"].Pod != nil
				})
				deaf.Store(true)
				w.kube.Lock()
				wires.cut("pods")
				w.kube.Unlock()
				w.create(makeGroup("gang", 1))
				w.eventually("the member is bound", func() bool { return w.placed("gang-0") == 1 })
				w.kube.Lock()
				wires.bury(podResource, testNamespace, "gang-0")
				w.kube.Unlock()
				if anew {
					w.create(madeAnew(makePod("gang-0", inGroup("nothing"))))
				}
				deaf.Store(false)
				w.eventually("nothing is assumed of it", func() bool { return len(w.sched.Cache.Dump().AssumedPods) == 0 })
				w.eventually("the gang has forgotten it", func() bool { return w.known("gang").Members["uid-gang-0"].Pod == nil })
				w.create(makeGroup("next", 2))
				for _, member := range makeMembers("next", 2) {
					w.create(member)
				}
				w.eventually("the next gang has the room", func() bool { return w.placed("next") == 2 })
			})
		})
	}
}

// queued says whether kube-scheduler's queue knows a Pod as a member that waits.
func (w *world) queued(name string) bool {
	return slices.ContainsFunc(w.engine().queue.Members(), func(pod *corev1.Pod) bool { return pod.Name == name })
}

// TestAnOrdinaryPodThatIsMadeAnewTakesNoRoom: while the watch of Pods is broken, a Pod is
// bound, goes, and another one of its name comes.
func TestAnOrdinaryPodThatIsMadeAnewTakesNoRoom(t *testing.T) {
	tests := map[string]func() *corev1.Pod{
		"it waits":           func() *corev1.Pod { return makePod("pod", plusCores("8")) },
		"it is on a node":    func() *corev1.Pod { return makePod("pod", onNode("node-1")) },
		"it became a member": func() *corev1.Pod { return makePod("pod", inGroup("nothing")) },
	}
	for name, anew := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 1))...)
				wires := newWires(&w.kube.Fake, w.kube.Tracker())
				var deaf atomic.Bool
				w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
					// The informer is of all namespaces.
					return deaf.Load() && action.GetNamespace() == "", nil, errors.New("no answer")
				})
				// Its binding waits until the watch has broken.
				broken := make(chan struct{})
				w.bindError = func(string) error { <-broken; return nil }
				w.start()
				w.create(makePod("pod"))
				w.meanwhile("it is assumed", func() bool { return len(w.sched.Cache.Dump().AssumedPods) == 1 })
				deaf.Store(true)
				wires.cut("pods")
				close(broken)
				w.eventually("it is bound", func() bool { return w.placed("pod") == 1 })
				w.kube.Lock()
				wires.bury(podResource, testNamespace, "pod")
				w.kube.Unlock()
				w.create(madeAnew(anew()))
				deaf.Store(false)
				w.eventually("nothing is assumed of it", func() bool { return len(w.sched.Cache.Dump().AssumedPods) == 0 })
				w.create(makePod("next"))
				w.eventually("the next Pod has the room", func() bool { return w.placed("next") == 1 })
			})
		})
	}
}
