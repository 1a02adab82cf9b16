// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// admit has Kueue admit the Framework, whose UID is THIS in the admission, and withdraw has it take that back.
func (w *world) admit(admission string) {
	w.edit(func(f *frameworkv1.Framework) {
		f.Annotations = map[string]string{frameworkv1.AnnotationAdmission: strings.ReplaceAll(admission, "THIS", string(f.UID))}
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

const admitted = `{"framework": "THIS", "workload": "w", "roles": {"worker": {"nodeSelector": {"flavour": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}}}`

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

	w.admit(`{"framework": "THIS", "workload": "w"}`)
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

// TestAnAdmissionIsOfOneFramework: that of another one, which was copied with its annotations, admits nothing.
func TestAnAdmissionIsOfOneFramework(t *testing.T) {
	for _, admission := range []string{`{"framework": "another", "workload": "w"}`, `{"workload": "w"}`, `{"framework": "THIS"}`, "yes", ""} {
		w := inQueue(t)
		w.admit(admission)
		if got := w.podNames(); len(got) > 0 {
			t.Errorf("by the admission %q it has the Pods %v", admission, got)
		}
	}
}

// TestWhatRunsByAnAdmissionOfAnEarlierVersionGoesOn: it says of no Framework that it is admitted. Without one that does, no
// attempt begins.
func TestWhatRunsByAnAdmissionOfAnEarlierVersionGoesOn(t *testing.T) {
	w := inQueue(t)
	w.admit(admitted)
	w.runPods()
	w.admit(`{"workload": "w"}`)
	w.crash()
	w.run()
	if w.written.State != frameworkv1.FrameworkAttemptRunning || w.written.AttemptStatus.ID != 0 {
		t.Fatalf("it is %s in attempt %d", w.written.State, w.written.AttemptStatus.ID)
	}
	w.edit(func(f *frameworkv1.Framework) { f.Spec.RetryPolicy.MaxRetryCount = 1 })
	w.end("worker-0", 1)
	w.allGone()
	w.after(time.Minute)
	if w.written.State != frameworkv1.FrameworkAttemptCreationPending || w.written.AttemptStatus.ID != 1 {
		t.Fatalf("it is %s in attempt %d before its admission is written anew", w.written.State, w.written.AttemptStatus.ID)
	}
	w.admit(admitted)
	if got := w.podNames(); len(got) != 2 {
		t.Errorf("its admission was written anew, and it has the Pods %v", got)
	}
}

// TestAPreemptedFrameworkWaitsInTheQueue: the quota is given back before the next attempt begins.
func TestAPreemptedFrameworkWaitsInTheQueue(t *testing.T) {
	w := inQueue(t)
	w.edit(func(f *frameworkv1.Framework) {
		f.Spec.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: true}
	})
	w.admit(admitted)
	w.runPods()
	pod := w.pods["fw-worker-0"]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	w.deletePod(pod.Name, 30)
	w.settles()
	w.after(5 * time.Minute)
	if end := w.written.AttemptStatus.CompletionStatus; end == nil || end.Disruption != frameworkv1.DisruptionPreempted || w.written.State != frameworkv1.FrameworkAttemptCompleted {
		t.Fatalf("it is %s in attempt %d, which ended with %+v", w.written.State, w.written.AttemptStatus.ID, end)
	}
	w.withdraw()
	w.run()
	if w.written.State != frameworkv1.FrameworkAttemptCreationPending || len(w.pods) > 0 {
		t.Fatalf("its admission is gone, and it is %s with the Pods %v", w.written.State, w.podNames())
	}
	w.admit(`{"framework": "THIS", "workload": "w", "attempt": 1}`)
	if got := w.podNames(); len(got) != 2 || w.written.AttemptStatus.ID != 1 {
		t.Errorf("it is admitted again, and has the Pods %v in attempt %d", got, w.written.AttemptStatus.ID)
	}
}

// TestAFrameworkThatCannotBeInItsQueueSaysWhy, by its condition and one event.
func TestAFrameworkThatCannotBeInItsQueueSaysWhy(t *testing.T) {
	w := inQueue(t)
	const why = "a Framework in a queue has at most 18 roles with tasks"
	w.edit(func(f *frameworkv1.Framework) { f.Annotations = map[string]string{frameworkv1.AnnotationRefusal: why} })
	var told []Event
	w.onEvent = func(event Event) { told = append(told, event) }
	w.after(10 * time.Second)
	w.crash()
	w.after(10 * time.Second)
	c := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionAdmitted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != frameworkv1.ReasonNotAdmissible || c.Message != why {
		t.Errorf("the condition is %v", c)
	}
	if len(told) != 1 || told[0].Reason != frameworkv1.ReasonNotAdmissible || !told[0].Warning || told[0].Message != why {
		t.Errorf("the user is told %v", told)
	}
	w.admit(admitted)
	if c := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionAdmitted); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("it is admitted, and the condition is %v", c)
	}
}

// TestPodsThatKueueWouldTakeForJobsOfTheirOwnSayThatTheyAreNot.
func TestPodsThatKueueWouldTakeForJobsOfTheirOwnSayThatTheyAreNot(t *testing.T) {
	for admission, want := range map[string]bool{`{"framework": "THIS", "workload": "w", "gated": true}`: true, admitted: false} {
		w := inQueue(t)
		w.admit(admission)
		for _, pod := range w.pods {
			_, labelled := pod.Labels[frameworkv1.LabelGated]
			_, annotated := pod.Annotations[annotationGatedFor]
			if labelled != want || annotated != want {
				t.Errorf("by the admission %s Pod %s has the labels %v and annotations %v", admission, pod.Name, pod.Labels, pod.Annotations)
			}
		}
	}
}
