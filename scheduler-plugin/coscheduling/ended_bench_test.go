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

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// BenchmarkEndedPods lists 100,000 Pods that have ended and are members of nothing, with an API server in the same
// process: all of them, as dialects and rules need it of which no watch can select the Pods, or those that
// a label names, of which there are none. B/Pod is what the informer keeps.
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
	for name, watch := range map[string]struct {
		label string
		keep  cache.TransformFunc
		want  int
	}{
		"all":      {keep: keepMembers, want: pods},
		"by label": {label: schedulingv1alpha1.LabelPodGroup, keep: informing.DropManagedFields},
	} {
		b.Run(name, func(b *testing.B) {
			var kept uint64
			for b.Loop() {
				b.StopTimer()
				before := heap()
				ctx, stop := context.WithCancel(b.Context())
				w := &watcher{ctx: ctx}
				informer := w.endedInformer(&members{client: client}, watch.label)
				if err := informer.SetTransform(watch.keep); err != nil {
					b.Fatal(err)
				}
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
				if n := len(informer.GetStore().ListKeys()); n != watch.want {
					b.Fatalf("%d Pods are listed, want %d", n, watch.want)
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
