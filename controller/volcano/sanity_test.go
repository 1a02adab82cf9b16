// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestNothingThatIsStoredMakesADecisionPanic decides about specs, statuses and Pods of
// which nobody has checked anything.
func TestNothingThatIsStoredMakesADecisionPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(numbers ...int32) int32 { return numbers[random.IntN(len(numbers))] }
	words := []string{"", "x", "there=0-2147483647", "succeeded=0-3 failed=0-3 there=0-3", "=", "there=", "-", "9"}
	for range 3000 {
		w := newWorld(t, job())
		for range random.IntN(4) {
			task := ofTask([]string{"a", "b", "", "x y"}[random.IntN(4)], pick(0, 1, 3, -1, math.MaxInt32, math.MinInt32))
			task.MaxRetry = pick(0, -1, math.MaxInt32)
			if random.IntN(2) == 0 {
				task.MinAvailable = ptr.To(pick(0, -1, 2, math.MaxInt32, math.MinInt32))
			}
			if random.IntN(3) == 0 {
				task.PartitionPolicy = &batchv1alpha1.PartitionPolicySpec{TotalPartitions: pick(0, 1, -1, math.MaxInt32), PartitionSize: pick(0, -1, 2), MinPartitions: pick(0, 3, math.MaxInt32)}
			}
			if random.IntN(3) == 0 {
				task.DependsOn = &batchv1alpha1.DependsOn{Name: []string{"a", "none"}}
			}
			if random.IntN(4) == 0 {
				task.Template.Raw = []byte([]string{"", "[]", "{", "null", `{"spec":7}`}[random.IntN(5)])
			}
			w.job.Spec.Tasks = append(w.job.Spec.Tasks, task)
		}
		w.job.Spec.MinAvailable, w.job.Spec.MaxRetry = pick(0, -1, 2, math.MaxInt32), pick(0, -1, math.MinInt32, math.MaxInt32)
		w.job.Spec.Policies = []batchv1alpha1.LifecyclePolicy{in([]batchv1alpha1.Duration{"", "x", "5s", "-1h", "99999999h"}[random.IntN(5)], on("*", []busv1alpha1.Action{"", "RestartPartition", "RestartTask", "AbortJob"}[random.IntN(4)]))}
		status := &batchv1alpha1.JobStatus{
			Version: pick(0, -1, 3, math.MaxInt32), RetryCount: pick(0, -1, math.MaxInt32),
			State: batchv1alpha1.JobState{
				Phase:   append(allPhases, "", "Odd")[random.IntN(len(allPhases)+2)],
				Message: []string{"", "RestartPod a -1: x", "RestartPartition a 99: x", "RestartTask none: x", "Command : x"}[random.IntN(5)],
			},
			ControlledResources: map[string]string{"pods-a": words[random.IntN(len(words))], "pods-": words[random.IntN(len(words))]},
		}
		if random.IntN(8) == 0 {
			status = nil
		}
		pods := map[string]*corev1.Pod{}
		for range random.IntN(4) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: podName("j", "a", pick(0, 1, 7, -1, math.MaxInt32)), UID: w.newUID(),
				Labels:      map[string]string{batchv1alpha1.KeyTaskName: "a", batchv1alpha1.KeyTaskIndex: []string{"0", "1", "7", "-1", "2147483647", "x"}[random.IntN(6)]},
				Annotations: map[string]string{batchv1alpha1.KeyJobVersion: []string{"0", "3", "x", "99999999999"}[random.IntN(4)], KeyEvictedAt: words[random.IntN(len(words))]},
			}, Status: corev1.PodStatus{Phase: []corev1.PodPhase{"", corev1.PodRunning, corev1.PodFailed, "Odd"}[random.IntN(4)]}}
			if random.IntN(4) == 0 {
				pod.DeletionTimestamp = &metav1.Time{Time: w.now}
			}
			pods[pod.Name] = pod
		}
		p, _ := Decide(Snapshot{
			Job: w.job, Known: plan.Known[batchv1alpha1.JobStatus]{Persisted: status, Status: status, Current: true}, Pods: pods, Options: w.options,
			Commands: []*busv1alpha1.Command{{}, {Action: "AbortJob", Target: &metav1.OwnerReference{}}},
		}, w.now.Add(time.Duration(random.IntN(100))*time.Second))
		for _, action := range p.Actions {
			if action.Verb == plan.Create && action.Build != nil {
				if _, err := action.Build(); err != nil {
					t.Errorf("%s: %v", action, err)
				}
			}
		}
	}
}

// TestASpecThatMakesNoSenseTakesNoPods edits a Job that runs into nonsense, as the CRD of
// somebody else may let users do.
func TestASpecThatMakesNoSenseTakesNoPods(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = -1 })
	s.after(3).hasPods("j-a-0", "j-a-1")
	if !s.told(ReasonInvalidJob) {
		t.Errorf("events: %v", s.events)
	}
}
