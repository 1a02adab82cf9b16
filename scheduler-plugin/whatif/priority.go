// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// PriorityClass is what a Pod or gang gets from a PriorityClass.
type PriorityClass struct {
	Value int32
	// PreemptsNobody reports that Pods and gangs of the class never preempt others.
	PreemptsNobody bool
	// IsDefault means that Pods without a class get this one.
	IsDefault bool
}

// AddClass adds a PriorityClass to a Snapshot that is being built.
func (s *Snapshot) AddClass(class *schedulingv1.PriorityClass) {
	if s.Classes == nil {
		s.Classes = make(map[string]PriorityClass)
	}
	s.Classes[class.Name] = PriorityClass{Value: class.Value, IsDefault: class.GlobalDefault,
		PreemptsNobody: class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever}
}

// admitted returns a copy of a new Pod with the priority that the API server would set: that of the Pod's
// PriorityClass, or else of the default class. If there are several default classes, the one with the lowest value
// counts.
func (s *Snapshot) admitted(pod *corev1.Pod) *corev1.Pod {
	class, known := s.Classes[pod.Spec.PriorityClassName]
	if pod.Spec.PriorityClassName == "" {
		for _, other := range s.Classes {
			if other.IsDefault && (!known || other.Value < class.Value) {
				class, known = other, true
			}
		}
	}
	if !known {
		return pod
	}
	admitted := *pod
	if pod.Spec.Priority == nil {
		admitted.Spec.Priority = &class.Value
	}
	if class.PreemptsNobody && pod.Spec.PreemptionPolicy == nil {
		admitted.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	}
	return &admitted
}
