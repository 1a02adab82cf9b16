// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// lingering is a plugin that lets no Pod be bound before the test says so, except for one.
type lingering struct {
	except  string       // the name of a Pod that is bound at once
	began   atomic.Int32 // how often a Pod was about to be bound
	release chan struct{}
	fails   error // with which bindings fail after release, nil if they do not
}

func (*lingering) Name() string { return "Lingering" }

func (*lingering) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (l *lingering) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if pod.Name == l.except {
		return nil
	}
	l.began.Add(1)
	select {
	case <-l.release:
		return fwk.AsStatus(l.fails)
	case <-ctx.Done():
		return fwk.AsStatus(context.Cause(ctx))
	}
}

// TestAGangIsNotLeftInPartByThePreemptionOfAMemberThatIsAboutToBeBound: the member that is
// taken is not deleted, but given back. The other one could be bound all the same.
func TestAGangIsNotLeftInPartByThePreemptionOfAMemberThatIsAboutToBeBound(t *testing.T) {
	onFirst := func(w *schedulertesting.PodWrapper) {
		w.NodeSelector(map[string]string{corev1.LabelHostname: "node-0"})
	}
	for name, group := range map[string]*schedulingv1alpha1.PodGroup{
		"one that goes whole": makeGroup("gang", 2),
		"one whose members go one at a time once it has started": makeGroup("gang", 2, byPods),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 1), group, makePod("gang-0", inGroup("gang"), onFirst), makePod("gang-1", inGroup("gang")))...)
				lingers := &lingering{except: "high", release: make(chan struct{})}
				w.others = []fwk.Plugin{lingers}
				w.start()
				w.eventually("both members are about to be bound", func() bool { return lingers.began.Load() >= 2 })
				w.create(makePod("high", ofPriority(10), onFirst))
				w.eventually("the Pod has its place", func() bool { return w.nodeOf()["high"] != "" })
				close(lingers.release)
				w.eventually("both members wait again", func() bool { return w.marked("gang") == 2 })
				if n := w.placed("gang"); n != 0 {
					t.Errorf("%d members are left on nodes", n)
				}
			})
		})
	}
}
