// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestThePodsOfAJobCountInThePodGroupThatWasMadeForIt, and nothing is written of it before they are known: somebody else runs
// the informer of these Pods, later.
func TestThePodsOfAJobCountInThePodGroupThatWasMadeForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := map[string]string{"batch.kubernetes.io/controller-uid": "u"}
		group := newGroup("job-u", 2)
		group.Spec.MemberLabels, group.Status.Phase, group.Status.Running = labels, "Running", 2
		w := newWorld(t, group)
		for _, name := range []string{"job-0", "job-1"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: "node"}}
			w.create(in(corev1.PodRunning, pod)...)
		}
		lockstep, kube := w.clients()
		jobs := informing.Namespaces(nil).Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(kube, kube.CoreV1().Pods(namespace), func(options *metav1.ListOptions) {
				options.LabelSelector = "batch.kubernetes.io/controller-uid"
			})
		})
		informers := externalversions.NewSharedInformerFactory(lockstep, 0)
		c, err := New(lockstep, kube, informers.Scheduling().V1alpha1().PodGroups(), nil, jobs)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		informers.StartWithContext(ctx)
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, 2) }()
		time.Sleep(time.Minute)
		w.settle()
		if len(w.written) > 0 {
			t.Errorf("%v was written, and the Pods were not known", w.written)
		}
		go jobs.RunWithContext(ctx)
		time.Sleep(2 * implicitWindow)
		w.settle()
		if status := w.group("job-u").Status; status.Phase != "Running" || status.Members != 2 || status.Running != 2 {
			t.Errorf("its status is %+v, want two that run", status)
		}
		apiserver.Remove[corev1.Pod](w.server, testNamespace, "job-0")
		w.settle()
		if status := w.group("job-u").Status; status.Phase != "Unknown" || status.Members != 1 {
			t.Errorf("its status is %+v, want one that runs of two", status)
		}
		stop()
		informers.Shutdown()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
