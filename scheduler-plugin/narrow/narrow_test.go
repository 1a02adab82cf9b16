// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package narrow_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/narrow"
)

// TestPodsElsewhereTakeRoomAndAreLeftAlone: kube-scheduler's informer shows the Pods of all
// namespaces, since they take room, and those that are not served as if nobody could place or
// preempt them.
func TestPodsElsewhereTakeRoomAndAreLeftAlone(t *testing.T) {
	server := apiserver.New(t)
	for _, namespace := range []string{"served", "elsewhere"} {
		apiserver.Add(server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
			Spec:       corev1.PodSpec{SchedulerName: "ours", NodeName: "n", Priority: ptr.To[int32](7)},
		})
	}
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		namespaces informing.Namespaces
		scheduler  string
		priority   int32
	}{
		"some namespaces are served": {informing.Namespaces{"served"}, "", math.MaxInt32},
		"all are":                    {nil, "ours", 7},
	} {
		t.Run(name, func(t *testing.T) {
			factory := kube.NewInformerFactory(client, nil)
			narrow.Informers(factory, tc.namespaces)
			pods := factory.Core().V1().Pods()
			shown := pods.Informer().HasSynced
			factory.StartWithContext(t.Context())
			if !cache.WaitForCacheSync(t.Context().Done(), shown) {
				t.Fatal("the Pods are never shown")
			}
			for namespace, want := range map[string]struct {
				scheduler string
				priority  int32
			}{"served": {"ours", 7}, "elsewhere": {tc.scheduler, tc.priority}} {
				pod, err := pods.Lister().Pods(namespace).Get("p")
				if err != nil {
					t.Fatal(err)
				}
				if pod.Spec.NodeName != "n" || pod.Spec.SchedulerName != want.scheduler || corev1helpers.PodPriority(pod) != want.priority || pod.ManagedFields != nil {
					t.Errorf("the Pod %s is on %q, of the scheduler %q, with priority %d, want n, %q, %d; its managed fields: %v", namespace,
						pod.Spec.NodeName, pod.Spec.SchedulerName, corev1helpers.PodPriority(pod), want.scheduler, want.priority, pod.ManagedFields)
				}
			}
		})
	}
}

// TestPodsElsewhereThatHaveEndedAreNoMembers: nothing is kept by which they could be.
func TestPodsElsewhereThatHaveEndedAreNoMembers(t *testing.T) {
	server := apiserver.New(t)
	for _, namespace := range []string{"served", "elsewhere"} {
		apiserver.Add(server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{"gang": "g"}},
			Status:     corev1.PodStatus{Phase: corev1.PodSucceeded},
		})
	}
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory := kube.NewInformerFactory(client, nil)
	narrow.Informers(factory, informing.Namespaces{"served"})
	pods, err := kube.PodsOf(factory)
	if err != nil {
		t.Fatal(err)
	}
	pods.KeepMembers(func(pod *corev1.Pod) bool { return pod.Labels["gang"] != "" })
	factory.StartWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
		t.Fatal("the Pods are never shown")
	}
	for _, object := range pods.All().GetStore().List() {
		if pod, ok := object.(*corev1.Pod); !ok || (pod.Labels["gang"] != "") != (pod.Namespace == "served") {
			t.Errorf("%v is kept", object)
		}
	}
	if pods := factory.Core().V1().Pods().Informer().GetStore().List(); len(pods) > 0 {
		t.Errorf("kube-scheduler sees %v", pods)
	}
}
