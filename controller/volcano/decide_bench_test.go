// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
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
