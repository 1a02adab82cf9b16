// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"gang": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

func TestInformersGetReadyAndSeeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(t)
		apiserver.Add(server, newPod("old"))
		config := server.Process("controller").Config()
		config.ContentType = "application/vnd.kubernetes.protobuf"
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		pods := factory.Core().V1().Pods().Informer()
		var events []string
		_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { events = append(events, "added "+object.(*corev1.Pod).Name) },
			UpdateFunc: func(_, object any) { events = append(events, "updated "+object.(*corev1.Pod).Name) },
			DeleteFunc: func(object any) { events = append(events, "deleted "+object.(*corev1.Pod).Name) },
		})
		if err != nil {
			t.Fatal(err)
		}
		factory.StartWithContext(t.Context())
		if !cache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
			t.Fatal("not synced")
		}
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), newPod("new"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := client.CoreV1().Pods("ns").Delete(t.Context(), "new", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		t.Log(events)
		for _, e := range server.Journal() {
			t.Log(e)
		}
	})
}
