// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// licence is a plugin that keeps Pods without a licence back.
type licence struct{}

func (licence) Name() string { return "Licence" }

func (licence) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if pod.Annotations["licence"] == "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the Pod has no licence")
	}
	return nil
}

// TestOtherPluginsKeepMembersBackToo: each member, and not the first alone.
func TestOtherPluginsKeepMembersBackToo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		licensed := func(w *schedulertesting.PodWrapper) { w.Annotation("licence", "yes") }
		w := newWorld(t, all(makeNodes("node", 1, 8), makeGroup("gang", 3), makeMembers("gang", 2, licensed), makePod("gang-2", inGroup("gang")),
			makeGroup("enough", 2), makePod("enough-0", inGroup("enough"), licensed), makePod("enough-1", inGroup("enough"), licensed),
			makePod("enough-2", inGroup("enough")))...)
		w.others = []fwk.Plugin{licence{}}
		w.start()
		got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		if want := "1 of 3 members may not be scheduled yet: 1 the Pod has no licence (Licence)"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if n := w.marked("gang"); n != 0 {
			t.Errorf("%d members are told that there is no room", n)
		}
		w.eventually("a gang that has enough with a licence is placed", func() bool { return w.placed("enough") == 2 })
		if n := w.placed("gang"); n != 0 {
			t.Errorf("%d members are placed of a gang whose third may not be scheduled", n)
		}
		pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "gang-2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations = map[string]string{"licence": "yes"}
		if _, err := w.kube.CoreV1().Pods(testNamespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the gang is placed when all its members may be", func() bool { return w.placed("gang") == 3 })
	})
}
