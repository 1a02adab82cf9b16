// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// inQueue is a world of a Framework of two workers in a queue of Kueue.
func inQueue(t *testing.T) *world {
	f := framework(role("worker", 2))
	f.Labels = map[string]string{frameworkv1.LabelQueue: "queue"}
	w := newWorld(t, f)
	w.options.Queues = true
	w.run()
	return w
}

// admit has Kueue admit the Framework, and withdraw has it take that back.
func (w *world) admit(admission string) {
	w.edit(func(f *frameworkv1.Framework) {
		f.Annotations = map[string]string{frameworkv1.AnnotationAdmission: admission}
	})
	w.run()
}

func (w *world) withdraw() {
	w.edit(func(f *frameworkv1.Framework) { f.Annotations = nil })
	w.run()
}

// gone has all Pods of an attempt that ends be gone.
func (w *world) allGone() {
	w.collectGarbage()
	for _, name := range w.podNames() {
		w.endPod(name)
	}
	w.collectGarbage()
	w.run()
}

const admitted = `{"workload": "w", "roles": {"worker": {"nodeSelector": {"flavour": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}}}`

// TestAFrameworkInAQueueWaitsUntilItIsAdmitted, gives way when it is evicted, and begins anew when
// it is admitted again, which counts as no failure.
func TestAFrameworkInAQueueWaitsUntilItIsAdmitted(t *testing.T) {
	w := inQueue(t)
	condition := func(want metav1.ConditionStatus) {
		t.Helper()
		if c := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionAdmitted); c == nil || c.Status != want {
			t.Errorf("the condition Admitted is %v, want %s", c, want)
		}
	}
	names := []string{"fw-worker-0", "fw-worker-1"}
	if len(w.pods) > 0 || w.configMap != nil || w.written.State != frameworkv1.FrameworkAttemptCreationPending {
		t.Fatalf("it is %s and has the Pods %v before it is admitted", w.written.State, w.podNames())
	}
	condition(metav1.ConditionFalse)

	w.admit(admitted)
	condition(metav1.ConditionTrue)
	if got := w.podNames(); !slices.Equal(got, names) {
		t.Fatalf("it is admitted, and has the Pods %v", got)
	}
	for _, pod := range w.pods {
		if pod.Spec.NodeSelector["flavour"] != "spot" || len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0].Key != "spot" {
			t.Errorf("Pod %s runs on %v, tolerates %v", pod.Name, pod.Spec.NodeSelector, pod.Spec.Tolerations)
		}
	}
	for _, name := range names {
		w.setPhase(name, corev1.PodRunning, 0)
	}
	w.run()

	w.withdraw()
	w.allGone()
	w.run()
	if len(w.pods) > 0 || w.written.State != frameworkv1.FrameworkAttemptCreationPending || w.written.AttemptStatus.ID != 1 {
		t.Fatalf("it has given way, and is %s in attempt %d with the Pods %v", w.written.State, w.written.AttemptStatus.ID, w.podNames())
	}
	if retries := w.written.RetryPolicyStatus; retries.TotalRetriedCount != 1 || retries.AccountableRetriedCount != 0 {
		t.Errorf("the retries are %+v, want one that does not count", retries)
	}
	condition(metav1.ConditionFalse)
	w.run()
	if len(w.pods) > 0 {
		t.Errorf("it has the Pods %v, and is not admitted again", w.podNames())
	}

	w.admit(`{"workload": "w"}`)
	if got := w.podNames(); !slices.Equal(got, names) {
		t.Fatalf("it is admitted again, and has the Pods %v", got)
	}
	for _, pod := range w.pods {
		if pod.Spec.NodeSelector["flavour"] != "" {
			t.Errorf("Pod %s runs on %v", pod.Name, pod.Spec.NodeSelector)
		}
	}
}

// TestAQueueMeansNothing where Kueue is off, and the annotation nothing without a queue.
func TestAQueueMeansNothing(t *testing.T) {
	for name, change := range map[string]func(*world){
		"where Kueue is off": func(w *world) {
			w.options.Queues = false
			w.framework.Labels = map[string]string{frameworkv1.LabelQueue: "queue"}
		},
		"for a Framework that is in none": func(w *world) { w.options.Queues = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(role("worker", 1)))
			change(w)
			w.framework.Annotations = map[string]string{}
			w.run()
			if got := w.podNames(); !slices.Equal(got, []string{"fw-worker-0"}) {
				t.Errorf("it has the Pods %v", got)
			}
			if c := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionAdmitted); c != nil {
				t.Errorf("it has the condition %v", c)
			}
		})
	}
}

// TestAStoppedFrameworkInAQueueEnds, though it was never admitted.
func TestAStoppedFrameworkInAQueueEnds(t *testing.T) {
	w := inQueue(t)
	w.edit(func(f *frameworkv1.Framework) { f.Spec.ExecutionType = frameworkv1.ExecutionStop })
	w.run()
	w.run()
	if w.written.State != frameworkv1.FrameworkCompleted {
		t.Errorf("it is %s", w.written.State)
	}
}
