// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// What bare Pods are compared with is only what Lockstep adds if they are the very
// Pods that the Frameworks have.
func TestBarePodsAreThoseOfAFrameworkWithoutWhatLockstepLooksFor(t *testing.T) {
	for name, of := range map[string]shape{"plain": plain, "gang": gang} {
		t.Run(name, func(t *testing.T) {
			recipes, err := podsOf(of("f", 3, 0), "ns")
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, recipe := range recipes {
				object, err := recipe()
				if err != nil {
					t.Fatal(err)
				}
				pod := object.(*corev1.Pod)
				if scheduler := pod.Spec.SchedulerName; (scheduler == "lockstep-scheduler") != (name == "gang") {
					t.Errorf("the scheduler of %s is %q", pod.Name, scheduler)
				}
				pod = bare(pod)
				names[pod.Name] = true
				if len(pod.OwnerReferences) > 0 || pod.Labels[schedulingv1alpha1.LabelPodGroup] != "" {
					t.Errorf("Lockstep takes %s for its own: %+v", pod.Name, pod.ObjectMeta)
				}
				if len(pod.Spec.Containers[0].Env) == 0 {
					t.Errorf("%s lacks what a task is told", pod.Name)
				}
			}
			if len(names) != 3 {
				t.Errorf("Pods are %v, want 3", names)
			}
		})
	}
}
