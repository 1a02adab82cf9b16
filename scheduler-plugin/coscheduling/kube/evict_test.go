// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// by is for whom the tests evict.
func by() *Preemptor {
	object := makePod("preemptor", 10, "")
	return &Preemptor{Object: object, Scheduler: testScheduler, Priority: 10, Kind: "PodGroup"}
}

func TestAnEvictedPodIsMarkedAndDeletedAndToldForWhom(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"))
	var marked *corev1.PodCondition
	w.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		marked = ConditionOf(w.pod("a"), corev1.DisruptionTarget)
		return false, nil, nil
	})
	if err := Evict(w.ctx, w.profile(), by(), w.pod("a"), "Plugin"); err != nil {
		t.Fatal(err)
	}
	if w.pod("a") != nil {
		t.Error("the Pod is there")
	}
	if marked == nil || marked.Status != corev1.ConditionTrue || marked.Reason != corev1.PodReasonPreemptionByScheduler {
		t.Errorf("before it was deleted it said %+v, want that it is preempted", marked)
	}
	if said := <-w.recorder.Events; !strings.Contains(said, "Preempted by PodGroup uid-preemptor on node one") {
		t.Errorf("the event says %q, want by whom it was preempted and where", said)
	}
	if err := Evict(w.ctx, w.profile(), by(), makePod("a", 0, "one"), "Plugin"); err != nil {
		t.Errorf("a Pod that is gone is no error: %v", err)
	}
}

func TestAnEvictionThatIsRefusedIsAnError(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"))
	refuse := apierrors.NewTooManyRequests("not now", 1)
	w.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refuse })
	if err := Evict(w.ctx, w.profile(), by(), w.pod("a"), "Plugin"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the error is %v, want that of the API server", err)
	}
}

// TestAnotherPodOfTheNameIsNotEvicted: kube-scheduler's own code for victims goes by name.
func TestAnotherPodOfTheNameIsNotEvicted(t *testing.T) {
	w := newWorld(t, makeNode("one", "2"), makePod("a", 0, "one"))
	victim := w.pod("a")
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), `"uid":"uid-a"`) {
			t.Errorf("the patch %s does not say of which Pod it is", patch.GetPatch())
		}
		return false, nil, nil
	})
	var once bool
	w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !once {
			once = true
			another := victim.DeepCopy()
			another.UID = "another"
			if err := w.client.Tracker().Update(podResource, another, testNamespace, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}
		return false, nil, nil
	})
	if err := Evict(w.ctx, w.profile(), by(), victim, "Plugin"); err != nil {
		t.Error(err)
	}
	if pod := w.pod("a"); pod == nil || pod.UID != "another" {
		t.Errorf("the other Pod of the name is %v, want it there", pod)
	}
}
