// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// theirs is a server that serves PodGroups of Volcano's, with a node.
func theirs(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(t, apiserver.WithResource(apiserver.Resource{GroupVersionResource: dialect.Volcano.Resource(), Kind: "PodGroup"}))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}
	apiserver.Add(server, node)
	return server
}

// createGroup creates a PodGroup of Volcano's with a spec, and a Pod of it.
func createGroup(t *testing.T, server *apiserver.Server, reader *Reader, name string, spec map[string]any) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "team", "name": name}, "spec": spec}}
	group.SetGroupVersionKind(dialect.Volcano.Kind())
	if _, err := reader.Dynamic.Resource(dialect.Volcano.Resource()).Namespace("team").Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apiserver.Add(server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name + "-0", Annotations: map[string]string{"scheduling.k8s.io/group-name": name}}})
}

// TestTiersThatAreNotKnownAreSaidToBeSo: which labels stand for them is in the scheduler's configuration, which nobody else reads.
func TestTiersThatAreNotKnownAreSaidToBeSo(t *testing.T) {
	server := theirs(t)
	reader := readerOf(t, server)
	createGroup(t, server, reader, "near", map[string]any{"minMember": int64(1), "networkTopology": map[string]any{"mode": "hard", "highestTierAllowed": int64(1)}})
	createGroup(t, server, reader, "anywhere", map[string]any{"minMember": int64(1)})
	for name, asks := range map[string]bool{"near": true, "anywhere": false} {
		answer, err := reader.Why(t.Context(), parsed(t, "team", name))
		says := slices.ContainsFunc(answer.Unknown, func(text string) bool { return strings.Contains(text, "networkTopology") })
		if err != nil || answer.Reason != answers.ReasonNext || says != asks {
			t.Errorf("%s: %v, %s: %s, not known: %q", name, err, answer.Reason, answer.Message, answer.Unknown)
		}
	}
}

// TestThePodsOfAJobAreMembersOfThePodGroupThatWasMadeForIt, though they do not name it.
func TestThePodsOfAJobAreMembersOfThePodGroupThatWasMadeForIt(t *testing.T) {
	server := theirs(t)
	reader := readerOf(t, server)
	labels := map[string]string{"batch.kubernetes.io/controller-uid": "u"}
	apiserver.Add(server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job-u"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 2, MemberLabels: labels}})
	apiserver.Add(server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job-0", Labels: labels}})
	apiserver.Add(server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other-0", Labels: map[string]string{"batch.kubernetes.io/controller-uid": "other"}}})
	answer, err := reader.Why(t.Context(), parsed(t, "team", "job-u"))
	if err != nil || !strings.Contains(answer.Message, "1 of the 2 members") {
		t.Errorf("%v, %s: %s", err, answer.Reason, answer.Message)
	}
	group, err := reader.podGroupNamed(t.Context(), parsed(t, "team", "job-u"))
	if err != nil {
		t.Fatal(err)
	}
	if pods, err := reader.JobPods(t.Context(), group); err != nil || len(pods) != 1 || pods[0].Name != "job-0" {
		t.Errorf("its members are %v (%v), want job-0", pods, err)
	}
}
