// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// alone is a plugin that lets no two members of a group share a node, and thinks about it for a while, the first time longer.
type alone struct {
	slow
	first *sync.Once
}

func (alone) Name() string { return "Alone" }

func (a alone) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	a.first.Do(func() { time.Sleep(time.Second) })
	return nil, a.slow.Filter(ctx, state, pod, nil)
}

func (alone) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (a alone) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	a.slow.Filter(ctx, state, pod, node)
	for _, other := range node.GetPods() {
		if group := pod.Labels[schedulingv1alpha1.LabelPodGroup]; group == a.group && other.GetPod().Labels[schedulingv1alpha1.LabelPodGroup] == group {
			return fwk.NewStatus(fwk.Unschedulable, "they share no node")
		}
	}
	return nil
}

// TestASearchInVainThatTakesTooLongIsOwed: the gang looks for Pods that may go for it longer than a cycle may take, and
// would not fit without them. Gangs of its namespace that are new wait for that.
func TestASearchInVainThatTakesTooLongIsOwed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		greedy := makeMembers("greedy", 2, func(p *schedulertesting.PodWrapper) { p.Priority(5).NodeSelector(map[string]string{"pool": "old"}) })
		w := newWorld(t, all(makeNodes("old", 1, 2, "pool=old"), makeNodes("new", 1, 2), makePod("low-0", onNode("old-0")), makePod("low-1", onNode("old-0")),
			bornAt(0, makeGroup("greedy", 2)), greedy)...)
		w.others = []fwk.Plugin{alone{slow{"greedy", 4 * time.Millisecond}, &sync.Once{}}}
		// The plan takes so long that the search has a quarter of it after the end of the cycle.
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms","cycleTimeout":"1020ms"}`
		w.start()
		got := w.condition("greedy", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if strings.Contains(got.Message, "given up") {
			t.Fatalf("the cycle was given up: %s", got.Message)
		}
		began := time.Now()
		w.create(bornAt(1, makeGroup("later", 1)))
		w.create(makeMembers("later", 1)[0])
		w.eventually("the new gang is placed", func() bool { return w.placed("later") == 1 })
		if waited := time.Since(began); waited < 4*time.Second {
			t.Errorf("it waits for %s only", waited)
		}
		if n := w.placed("low"); n != 2 {
			t.Errorf("%d of 2 Pods are left", n)
		}
	})
}
