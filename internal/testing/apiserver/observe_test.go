// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

func TestAnObserverSeesEachChangeAndWhoMadeIt(t *testing.T) {
	server := apiserver.New(t)
	var seen []string
	server.SetObserver(func(c *apiserver.Written) {
		phase := func(pod *corev1.Pod) string {
			if pod == nil {
				return "none"
			}
			return string(pod.Status.Phase)
		}
		seen = append(seen, fmt.Sprintf("%q %s %s: %s to %s", c.Process, c.Resource, c.Key,
			phase(apiserver.Before[corev1.Pod](c)), phase(apiserver.After[corev1.Pod](c))))
	})
	pods := kubeClient(t, server.Process("controller").Config()).CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), newPod("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Change(server, namespace, "a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
	if err := pods.Delete(t.Context(), "missing", metav1.DeleteOptions{}); err == nil {
		t.Error("a Pod that is not there was deleted")
	}
	apiserver.Remove[corev1.Pod](server, namespace, "a")
	want := []string{
		`"controller" pods ns/a: none to Pending`,
		`"" pods ns/a: Pending to Running`,
		`"" pods ns/a: Running to none`,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("unexpected changes (-want +got):\n%s", diff)
	}
}

func TestAnObserverSeesCustomObjects(t *testing.T) {
	server := apiserver.New(t)
	members := map[string]int32{}
	server.SetObserver(func(c *apiserver.Written) {
		if c.Removed() {
			delete(members, c.Key.Name)
			return
		}
		members[c.Key.Name] = apiserver.After[schedulingv1alpha1.PodGroup](c).Status.Members
	})
	for _, name := range []string{"a", "b"} {
		apiserver.Add(server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	apiserver.Change(server, namespace, "b", func(group *schedulingv1alpha1.PodGroup) { group.Status.Members = 3 })
	apiserver.Remove[schedulingv1alpha1.PodGroup](server, namespace, "a")
	if diff := cmp.Diff(map[string]int32{"b": 3}, members); diff != "" {
		t.Errorf("unexpected PodGroups (-want +got):\n%s", diff)
	}
}
