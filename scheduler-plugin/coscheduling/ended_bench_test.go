// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// BenchmarkEndedPods lists 100,000 Pods that have ended, with an API server in the same process: members of nothing, or all of them
// members of gangs. B/Pod is what the informer keeps.
func BenchmarkEndedPods(b *testing.B) {
	const pods = 100_000
	server := apiserver.New(b)
	for i := range pods {
		apiserver.Add(server, endedPod(i))
	}
	config := server.Config()
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	for name, isMember := range map[string]func(*corev1.Pod) bool{
		"ordinary": (&dialect.Links{}).MayBeMember,
		"members":  func(*corev1.Pod) bool { return true },
	} {
		b.Run(name, func(b *testing.B) {
			var kept uint64
			for b.Loop() {
				b.StopTimer()
				before := heap()
				ctx, stop := context.WithCancel(b.Context())
				informer, err := kube.PodsOf(kube.NewInformerFactory(client, nil))
				if err != nil {
					b.Fatal(err)
				}
				informer.KeepMembers(isMember)
				done := make(chan struct{})
				b.StartTimer()
				go func() {
					informer.RunWithContext(ctx)
					close(done)
				}()
				if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
					b.Fatal("the Pods are not listed")
				}
				b.StopTimer()
				if after := heap(); after > before {
					kept = max(kept, after-before) // what the informer before kept may go only now
				}
				if n := len(informer.All().GetStore().ListKeys()); n != pods {
					b.Fatalf("%d Pods are listed, want %d", n, pods)
				}
				stop()
				<-done
				b.StartTimer()
			}
			b.ReportMetric(float64(kept)/pods, "B/Pod")
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has found to be garbage is swept by now
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// endedPod is a Pod of an ordinary Job that has succeeded, of the size that such Pods have.
func endedPod(i int) *corev1.Pod {
	pod := makePod(fmt.Sprintf("job-%06d-x7k2p", i), labelled("batch.kubernetes.io/job-name", fmt.Sprintf("job-%06d", i)), onNode(fmt.Sprintf("node-%d", i%5000)))
	pod.Status.Phase = corev1.PodSucceeded
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:batch.kubernetes.io/job-name":{}}},"f:spec":{"f:containers":{}}}`)}}
	for n := range 20 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: "of a program that has run"})
	}
	return pod
}
