// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

func TestATestSeesAndChangesWhatIsStored(t *testing.T) {
	server := apiserver.New(t)
	apiserver.Add(server, newPod("b"))
	pod := newPod("a")
	pod.Status.Phase = corev1.PodRunning
	added := apiserver.Add(server, pod)
	if added.UID == "" || pod.UID != "" || added.Status.Phase != corev1.PodRunning {
		t.Errorf("the stored Pod is %+v, the test's %+v", added, pod)
	}
	apiserver.Change(server, namespace, "a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	pods := apiserver.All[corev1.Pod](server, namespace)
	if len(pods) != 2 || pods[0].Status.Phase != corev1.PodFailed || added.Status.Phase != corev1.PodRunning {
		t.Errorf("the Pods are %+v", pods)
	}
	apiserver.Remove[corev1.Pod](server, namespace, "a")
	if apiserver.Find[corev1.Pod](server, namespace, "a") != nil {
		t.Error("the Pod is still there")
	}
}

func TestATestChangesCustomObjects(t *testing.T) {
	server := apiserver.New(t)
	apiserver.Add(server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}})
	group := apiserver.Change(server, namespace, "a", func(group *schedulingv1alpha1.PodGroup) { group.Status.Members = 3 })
	if group.Status.Members != 3 || group.Generation != 1 {
		t.Errorf("the PodGroup is %+v", group)
	}
	group = apiserver.Change(server, namespace, "a", func(group *schedulingv1alpha1.PodGroup) { group.Spec.MinMember = 3 })
	if group.Generation != 2 {
		t.Errorf("the PodGroup is %+v", group)
	}
}

// TestWhatDoesNotDecodeCanBeStored is about objects that a CRD without a schema
// lets through.
func TestWhatDoesNotDecodeCanBeStored(t *testing.T) {
	server := apiserver.New(t)
	poison := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": frameworkv1.SchemeGroupVersion.String(), "kind": "Framework",
		"metadata": map[string]any{"namespace": namespace, "name": "a"},
		"spec":     map[string]any{"taskRoles": "many"},
	}}
	apiserver.Add(server, poison)
	var stored struct{ Spec map[string]string }
	if err := json.Unmarshal(server.JSON("frameworks", namespace, "a"), &stored); err != nil || stored.Spec["taskRoles"] != "many" {
		t.Errorf("stored is %+v (%v)", stored, err)
	}
}

func TestAResourceWithoutTheSubresourceStatusHasItsStatusWithTheRest(t *testing.T) {
	frameworks := frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)
	server := apiserver.New(t, apiserver.WithResource(apiserver.Resource{
		GroupVersionResource: frameworks, Kind: "Framework", NoStatus: true, Type: (*frameworkv1.Framework)(nil)}))
	client, err := versioned.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	framework := apiserver.Add(server, &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}})
	framework.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted}
	ours := client.FrameworkcontrollerV1().Frameworks(namespace)
	if _, err := ours.UpdateStatus(t.Context(), framework, metav1.UpdateOptions{}); err == nil ||
		err.Error() != `frameworks.frameworkcontroller.microsoft.com "a" not found` {
		t.Errorf("the error is %v", err)
	}
	updated, err := ours.Update(t.Context(), framework, metav1.UpdateOptions{})
	if err != nil || updated.Status == nil {
		t.Errorf("updated is %+v (%v)", updated, err)
	}
}

func TestMoreResourcesCanBeKnown(t *testing.T) {
	jobs := schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
	server := apiserver.New(t, apiserver.WithResource(apiserver.Resource{GroupVersionResource: jobs, Kind: "Job"}))
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
		"metadata": map[string]any{"namespace": namespace, "name": "a"},
	}}
	if added := apiserver.Add(server, job); added.GetUID() == "" {
		t.Errorf("the Job is %+v", added)
	}
	if server.JSON("jobs", namespace, "a") == nil {
		t.Error("the Job is not there")
	}
}
