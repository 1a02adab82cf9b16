// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestAMemberThatWasGivenBackIsNotAwaited: a gang takes the node of another one that is about
// to be bound. That one is given back, and has its place on a node that comes. A third gang
// takes that as well: nobody there ends by himself.
func TestAMemberThatWasGivenBackIsNotAwaited(t *testing.T) {
	on := func(node string) podOption {
		return func(w *schedulertesting.PodWrapper) { w.NodeSelector(map[string]string{corev1.LabelHostname: node}) }
	}
	w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("low", 1), makePod("low-0", inGroup("low")))...)
	lingers := &lingering{release: make(chan struct{})}
	lingers.began.Add(1)
	w.others = []fwk.Plugin{lingers}
	w.start()
	lingers.began.Wait()
	lingers.began.Add(3) // low again, and the two others
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
}
