// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

func attemptOwner(uid types.UID) []metav1.OwnerReference {
	configMap := &metav1.ObjectMeta{Name: "fw-attempt", UID: uid}
	return []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// groupOf makes the PodGroup of an attempt.
func groupOf(attempt types.UID, name string, minMember int32) *schedulingv1alpha1.PodGroup {
	group := makeGroup(name, minMember)
	group.UID = "group-of-" + attempt
	group.OwnerReferences = attemptOwner(attempt)
	return group
}

// of makes a Pod one of an attempt.
func of(attempt types.UID) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Pod.OwnerReferences = attemptOwner(attempt) }
}

// TestAStrangerWaitsAndIsTold plays it with a scheduler: a Pod with a copied label
// completes no gang and is not placed with one. It runs once the label is gone.
func TestAStrangerWaitsAndIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stray := makePod("stray", inGroup("gang"))
		w := newWorld(t, all(makeNodes("node", 1, 4), groupOf("this", "gang", 2), makePod("own-0", inGroup("gang"), of("this")), stray)...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		w.create(makePod("own-1", inGroup("gang"), of("this")))
		w.eventually("the members are placed", func() bool { return w.placed("own") == 2 })

		pods := w.kube.CoreV1().Pods(testNamespace)
		w.eventually("the stranger is told why it waits", func() bool {
			pod, err := pods.Get(t.Context(), "stray", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stray = pod
			return news.IsMarked(pod, news.ReasonNotAMember)
		})
		if stray.Spec.NodeName != "" {
			t.Errorf("the stranger is on %s", stray.Spec.NodeName)
		}
		stray.Labels, stray.ResourceVersion = nil, "without label" // a scheduler ignores updates that change nothing
		if _, err := pods.Update(t.Context(), stray, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the Pod without the label is scheduled on its own", func() bool { return w.placed("stray") == 1 })
	})
}
