// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkDecide measures a decision about a job of 1000 Pods of which one has changed.
func BenchmarkDecide(b *testing.B) {
	t := &testing.T{}
	w := newWorld(t, jobOf(t, objectOf(t, "", "", "", "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 1000, @t}}}")))
	w.run().SetPhase("j-worker-7", corev1.PodSucceeded, 0)
	snapshot := w.core.snapshot(w.View())
	snapshot.Memory = w.core.memory
	b.ResetTimer()
	for b.Loop() {
		if p, _ := Decide(snapshot, w.Now, steady{}); len(p.Actions) > 1 || p.Status.ReplicaStatuses["Worker"].Succeeded != 1 {
			b.Fatalf("unexpected: %v", p)
		}
	}
}

// BenchmarkPod measures how long the Pod of a worker takes to build, of a job of 1000, which
// knows them all.
func BenchmarkPod(b *testing.B) {
	t := &testing.T{}
	w := newWorld(t, jobOf(t, objectOf(t, "", "", "", "{tfReplicaSpecs: {Worker: {replicas: 1000, @t}}}")))
	w.Run()
	r := w.core.memory.reading
	var pod metav1.Object
	for b.Loop() {
		pod = r.builder.pod(r.types[0], 7, 1, "")
	}
	if pod.GetName() != "j-worker-7" {
		b.Fatal(pod.GetName())
	}
}
