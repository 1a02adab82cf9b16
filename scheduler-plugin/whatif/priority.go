// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// PriorityClass is what Pods and gangs get that name a PriorityClass.
type PriorityClass struct {
	Value int32
	// PreemptsNobody says that they wait where they would evict others.
	PreemptsNobody bool
	// IsDefault says that Pods get it that name none.
	IsDefault bool
}

// AddClass adds a PriorityClass to a Snapshot in the making.
func (s *Snapshot) AddClass(class *schedulingv1.PriorityClass) {
	if s.Classes == nil {
		s.Classes = make(map[string]PriorityClass)
	}
	s.Classes[class.Name] = PriorityClass{Value: class.Value, IsDefault: class.GlobalDefault,
		PreemptsNobody: class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever}
}

// admitted is a Pod that is not there yet, with the priority that the API server would give it: that of its
// class or, if it names none, of the one that is the default; of several of those, of the lowest.
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
