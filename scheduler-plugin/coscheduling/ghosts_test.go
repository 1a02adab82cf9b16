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

// TestAMemberOfWhichKubeSchedulerDoesNotHearTakesNoRoomOnceItIsGone: kube-scheduler and the
// plugin have a watch of Pods each. While that of kube-scheduler is broken, a gang is placed
// and goes. The next one finds its room.
func TestAMemberOfWhichKubeSchedulerDoesNotHearTakesNoRoomOnceItIsGone(t *testing.T) {
	tests := map[string]struct {
		heardOf bool // waiting, before the watch breaks
		anew    bool // another Pod takes the name of the one that goes
	}{
		"it has never heard of it":                           {},
		"it knows it as one that waits, and misses the rest": {heardOf: true},
		"another Pod has its name":                           {heardOf: true, anew: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, makeNodes("node", 1, 2)...)
			wires := newWires(&w.kube.Fake, w.kube.Tracker())
			var deaf atomic.Bool
			w.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
				runs := action.(clienttesting.ListAction).GetListRestrictions().Fields
				return deaf.Load() && !runs.Empty(), nil, errors.New("no answer")
			})
			w.start()
			if tc.heardOf {
				w.create(makePod("gang-0", inGroup("gang")))
				w.eventually("kube-scheduler knows the member", func() bool { return w.queued("gang-0") })
			}
			deaf.Store(true)
			w.kube.Lock()
			wires.cut(runningPods)
			w.kube.Unlock()
			if !tc.heardOf {
				w.create(makePod("gang-0", inGroup("gang")))
			}
			w.create(makeGroup("gang", 1))
			w.eventually("the member is bound", func() bool { return w.placed("gang-0") == 1 })
			w.kube.Lock()
			wires.bury(podResource, testNamespace, "gang-0")
			w.kube.Unlock()
			if tc.anew {
				again := madeAnew(makePod("gang-0", inGroup("nothing")))
				w.create(again)
			}
			deaf.Store(tc.heardOf == false)
			w.eventually("nothing is assumed of it", func() bool { return len(w.sched.Cache.Dump().AssumedPods) == 0 })
			deaf.Store(false)
			w.create(makeGroup("next", 2))
			for _, member := range makeMembers("next", 2) {
				w.create(member)
			}
			w.eventually("the next gang has the room", func() bool { return w.placed("next") == 2 })
		})
	}
}

// queued says whether kube-scheduler's queue knows a Pod as a member that waits.
func (w *world) queued(name string) bool {
	return slices.ContainsFunc(w.engine().queue.Members(), func(pod *corev1.Pod) bool { return pod.Name == name })
}
