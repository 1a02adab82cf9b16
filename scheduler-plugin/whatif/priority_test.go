// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestAGangThatIsNotThereHasThePriorityThatItWouldGet, of its class or of the default, and preempts as that says.
func TestAGangThatIsNotThereHasThePriorityThatItWouldGet(t *testing.T) {
	class := func(name string, value int32, isDefault bool, policy *corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault, PreemptionPolicy: policy}
	}
	for name, tc := range map[string]struct {
		ofPod, ofGroup string
		classes        []*schedulingv1.PriorityClass
		evicts         bool
	}{
		"its class outranks others":                              {ofPod: "high", classes: []*schedulingv1.PriorityClass{class("high", 5, false, nil)}, evicts: true},
		"it has no class":                                        {},
		"its class preempts nobody":                              {ofPod: "high", classes: []*schedulingv1.PriorityClass{class("high", 5, false, new(corev1.PreemptNever))}},
		"the class of the group preempts nobody":                 {ofPod: "high", ofGroup: "kind", classes: []*schedulingv1.PriorityClass{class("high", 5, false, nil), class("kind", 5, false, new(corev1.PreemptNever))}},
		"the default outranks others":                            {classes: []*schedulingv1.PriorityClass{class("usual", 5, true, nil)}, evicts: true},
		"of two defaults the lower one counts":                   {classes: []*schedulingv1.PriorityClass{class("usual", 5, true, nil), class("low", 0, true, nil)}},
		"the default is not for those that name a class":         {ofPod: "low", classes: []*schedulingv1.PriorityClass{class("usual", 5, true, nil), class("low", 0, false, nil)}},
		"the default preempts nobody, and no Pod says otherwise": {classes: []*schedulingv1.PriorityClass{class("usual", 5, true, new(corev1.PreemptNever))}},
	} {
		other, _ := gangOf("other", 1)
		s := cluster([]*corev1.Node{node("a", "1")}, other, ordinary("busy", "1", on("a")))
		for _, c := range tc.classes {
			s.AddClass(c)
		}
		pod := ordinary("train-0", "1", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = tc.ofPod })
		pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: "train"}
		group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"},
			Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1, PriorityClassName: tc.ofGroup}}
		answer, err := Assume(s, key("train"), &Assumption{Gang: &NewGang{Group: group, Pods: []*corev1.Pod{pod}}})
		if err != nil || answer.Fits || answer.FitsAfterPreemption != tc.evicts {
			t.Errorf("%s: evicts is %t, want %t (%v, %s)", name, answer.FitsAfterPreemption, tc.evicts, err, answer.Message)
		}
		if pod.Spec.Priority != nil {
			t.Errorf("%s: the question has changed the Pod", name)
		}
	}
}
