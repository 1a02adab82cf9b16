// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// BenchmarkDecide measures a decision about a Job of 1000 Pods of which one has changed.
func BenchmarkDecide(b *testing.B) {
	const pods = 1000
	j := job(ofTask("a", pods, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod)))
	j.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil}
	w := newWorld(&testing.T{}, j)
	w.run()
	for _, name := range w.ownPods() {
		w.setPhase(name, corev1.PodRunning, 0)
	}
	w.run()
	w.setPhase("j-a-7", corev1.PodSucceeded, 0)
	snapshot := w.snapshot()
	b.ResetTimer()
	for b.Loop() {
		if p, _ := Decide(snapshot, w.now); len(p.Actions) > 1 || p.Status.Succeeded != 1 {
			b.Fatalf("unexpected: %v", p)
		}
	}
}

// BenchmarkDecideWhenAllFail measures the first decision in a restart that all Pods of a Job
// join: each has failed, and its policy restarts it alone.
func BenchmarkDecideWhenAllFail(b *testing.B) {
	const pods = batchv1alpha1.MaxReplicas
	w := newWorld(&testing.T{}, job(ofTask("a", pods, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))))
	w.run()
	for _, name := range w.ownPods() {
		w.setPhase(name, corev1.PodFailed, 1)
	}
	var restarting Snapshot
	w.onPlan = func(seen Snapshot, p plan.Plan[batchv1alpha1.JobStatus]) {
		if seen.Persisted.State.Phase == rs && restarting.Job == nil {
			restarting = seen
		}
	}
	w.fate = func(a plan.Action) fate {
		if a.Verb == plan.CheckStatus {
			return refused
		}
		return done
	}
	w.run()
	b.ResetTimer()
	for b.Loop() {
		if p, _ := Decide(restarting, w.now); len(p.Actions) == 0 {
			b.Fatalf("unexpected: %v", p)
		}
	}
}
