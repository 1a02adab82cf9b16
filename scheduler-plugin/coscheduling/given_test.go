// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// TestAMemberThatWasGivenBackIsNotAwaited: a gang takes the node of another one that is about
// to be bound. That one is given back, and has its place on a node that comes. A third gang
// takes that as well: nobody there ends by himself.
func TestAMemberThatWasGivenBackIsNotAwaited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		on := func(node string) podOption {
			return func(w *schedulertesting.PodWrapper) { w.NodeSelector(map[string]string{corev1.LabelHostname: node}) }
		}
		w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("low", 1), makePod("low-0", inGroup("low")))...)
		lingers := &lingering{release: make(chan struct{})}
		w.others = []fwk.Plugin{lingers}
		w.start()
		w.eventually("low is about to be bound", func() bool { return lingers.began.Load() >= 1 })
		w.create(makeGroup("high", 1))
		w.create(makePod("high-0", inGroup("high"), ofPriority(10), on("node-0")))
		w.eventually("the first is given back", func() bool { return w.marked("low") == 1 })
		close(lingers.release)
		w.eventually("high has its place", func() bool { return w.placed("high") == 1 })
		w.create(makeNodes("late", 1, 1)[0])
		w.eventually("low has its place", func() bool { return w.placed("low") == 1 })
		if low := w.known("low").Members["uid-low-0"].Pod; low != nil && w.engine().evictions.IsLeaving(low, time.Now()) {
			t.Error("it runs, and is taken for one that ends soon")
		}
		w.create(makeGroup("higher", 1))
		w.create(makePod("higher-0", inGroup("higher"), ofPriority(10), on("late-0")))
		w.eventually("the third has its place", func() bool { return w.placed("higher") == 1 })
	})
}

// TestAVictimThatWasGivenBackIsNotDeleted: its binding failed while a gang was planned that is
// to have its room. It waits again, and its end would make no room.
func TestAVictimThatWasGivenBackIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("low", 2), makePod("low-0", inGroup("low")))...)
		w.start()
		w.eventually("the member waits", func() bool { return w.known("low").Waiting.Total == 1 })
		victim := w.known("low").Members["uid-low-0"].Pod
		e := w.engine()
		high := &gangs.View{Group: dialect.FromOwn(makeGroup("high", 1)), Waiting: []*corev1.Pod{makePod("high-0", inGroup("high"))}}
		e.evictor.evict(t.Context(), high, []*corev1.Pod{victim})
		w.eventually("it counts as one that waits", func() bool { return w.known("low").Waiting.Total == 1 })
		if e.evictions.IsLeaving(victim, time.Now()) {
			t.Error("its end is awaited")
		}
		if _, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "low-0", metav1.GetOptions{}); err != nil {
			t.Errorf("it is deleted: %v", err)
		}
	})
}
