// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
)

// TestTheQueueInFrontKnowsWhoIsNominated, in whatever way it has come, and for as long as the
// real queue says so.
func TestTheQueueInFrontKnowsWhoIsNominated(t *testing.T) {
	tests := map[string]func(w *world){
		"by preemption": func(w *world) {
			w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				victim := w.pod(action.(clienttesting.DeleteAction).GetName())
				if victim == nil || victim.Name != "a" {
					return false, nil, nil
				}
				victim.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Minute)}
				return true, nil, w.client.Tracker().Update(podResource, victim, testNamespace)
			})
			w.create(makePod("pod", 10, ""))
		},
		"when the Pod is seen first": func(w *world) {
			pod := makePod("pod", 0, "")
			pod.Status.NominatedNodeName = "one"
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "tests/gate"}} // else it is tried, and denominated
			w.create(pod)
		},
		"when it has changed": func(w *world) {
			pod := makePod("pod", 0, "")
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "tests/gate"}}
			w.create(pod)
			pod = pod.DeepCopy()
			pod.Status.NominatedNodeName, pod.ResourceVersion = "one", "2" // the fake API server gives none
			if err := w.client.Tracker().Update(podResource, pod, testNamespace); err != nil {
				w.t.Fatal(err)
			}
		},
	}
	for name, nominate := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, makeNode("one", "1"), makeNode("two", "1"), makePod("a", 0, "one"), makePod("b", 100, "two"))
			queue := KeepOut(w.inside, func(pod *corev1.Pod) bool { return pod.Labels["gang"] != "" }, func(fwk.ClusterEvent, any, any) {}, func(*corev1.Pod) {})
			member := makePod("member", 0, "")
			member.Labels["gang"], member.Status.NominatedNodeName = "one", "one"
			w.create(member)
			w.run()
			nominate(w)
			w.eventually("it is known that the Pod is nominated, and nobody else", func() bool {
				all := queue.Nominated()
				return len(all) == 1 && len(all["one"]) == 1 && all["one"][0].GetPod().Name == "pod"
			})
			if err := w.client.CoreV1().Pods(testNamespace).Delete(w.ctx, "pod", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.eventually("it is known that nobody is", func() bool { return len(queue.Nominated()) == 0 })
		})
	}
}
