//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

const gpu = "nvidia.com/gpu"

// lockstep runs kubectl lockstep as the administrator, and returns what it prints and its exit code.
func lockstep(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl-lockstep", append([]string{"--kubeconfig=" + cluster.Kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// wants fails if a command does not end with a code, or does not print some texts.
func wants(t *testing.T, code int, texts []string, args ...string) {
	t.Helper()
	out, got := lockstep(t, args...)
	if got != code {
		t.Errorf("%s: exit code %d, want %d", args, got, code)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s does not say %q:\n%s", args, text, out)
		}
	}
}

// addGPUNode adds a simulated node with four GPUs.
func addGPUNode(t *testing.T, name string) {
	t.Helper()
	nodes := cluster.Kube.CoreV1().Nodes()
	like, err := nodes.Get(t.Context(), "sim-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: like.Labels, Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{Taints: like.Spec.Taints}, Status: *like.Status.DeepCopy()}
	for key, value := range like.Annotations {
		if strings.HasPrefix(key, "kwok.x-k8s.io/") {
			node.Annotations[key] = value
		}
	}
	node.Labels[corev1.LabelHostname] = name
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list[gpu] = resource.MustParse("4")
	}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestAGangThatLacksGPUs: why names them; simulate says how many nodes help; and with just this number of nodes the gang is placed.
func TestAGangThatLacksGPUs(t *testing.T) {
	ns := cluster.Namespace(t)
	addGPUNode(t, "gpu-0")
	cluster.CreateGroup(t, ns, "train", 3)
	for i := range 3 {
		cluster.CreatePod(t, ns, testbed.MakePod(fmt.Sprintf("train-%d", i), testbed.InGroup("train"), func(pod *corev1.Pod) {
			resources := &pod.Spec.Containers[0].Resources
			resources.Requests[gpu] = resource.MustParse("4")
			resources.Limits = corev1.ResourceList{gpu: resource.MustParse("4")}
			// The taint of simulated nodes.
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}))
	}
	cluster.WaitGroupTold(t, ns, "train", "short of 8 "+gpu)

	short := "there is room for 1 of the 3 members that are needed; they need 8 more nvidia.com/gpu, and only 1 of 7 nodes has any; if nothing else ran, there would be room for 1"
	wants(t, 0, []string{"NotEnoughResources: " + short, "next: ", "not known: nodes that the scheduler has reserved for other gangs count as free"}, "why", "train", "-n", ns)
	wants(t, 8, []string{short}, "simulate", "train", "-n", ns)
	wants(t, 8, []string{"room for 2 of the 3"}, "simulate", "train", "-n", ns, "--add-nodes", "gpu-0=1")
	wants(t, 0, []string{"3 of 3 members have room, on 3 nodes", "new-gpu-0-2"}, "simulate", "train", "-n", ns, "--add-nodes", "gpu-0=2")
	wants(t, 0, []string{"train", "1"}, "queue", "-n", ns)

	wants(t, 2, []string{"NODE=N"}, "simulate", "train", "-n", ns, "--add-nodes", "gpu-0")
	wants(t, 2, []string{"no node"}, "simulate", "train", "-n", ns, "--add-nodes", "none=1")
	wants(t, 2, []string{"-o takes"}, "why", "train", "-n", ns, "-o", "wide")
	wants(t, 2, nil, "simulate")
	wants(t, 3, nil, "why", "nothing", "-n", ns)

	addGPUNode(t, "gpu-1")
	addGPUNode(t, "gpu-2")
	cluster.WaitMembersPlaced(t, ns, "train", 3)
	wants(t, 0, []string{"Placed: "}, "why", "train", "-n", ns)
}

// TestAFrameworkThatIsNotThereYet is simulated from its manifest.
func TestAFrameworkThatIsNotThereYet(t *testing.T) {
	ns := cluster.Namespace(t)
	manifest := func(cpu string) string {
		path := filepath.Join(t.TempDir(), "framework.yaml")
		text := `{apiVersion: frameworkcontroller.microsoft.com/v1, kind: Framework, metadata: {name: new}, spec: {taskRoles: [
{name: worker, taskNumber: 2, task: {pod: {spec: {tolerations: [{operator: Exists}], containers: [{name: main, image: any, resources: {requests: {cpu: "` + cpu + `"}}}]}}}}]}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wants(t, 0, []string{"2 of 2 members have room"}, "simulate", "-f", manifest("5"), "-n", ns)
	wants(t, 8, []string{"room for 0 of the 2"}, "simulate", "-f", manifest("9"), "-n", ns)
	wants(t, 2, []string{"no such file"}, "simulate", "-f", "/does/not/exist", "-n", ns)
}

// TestWhoMayReadHisNamespaceAlone is told what he may read, and that the rest is not known.
func TestWhoMayReadHisNamespaceAlone(t *testing.T) {
	ns := cluster.Namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lister"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "scheduling.lockstep.dev"}, Resources: []string{"pods", "podgroups"}, Verbs: []string{"list"}}}}
	if _, err := cluster.Kube.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "lister"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lister"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}}}
	if _, err := cluster.Kube.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.CreateGroup(t, ns, "train", 1)
	cluster.CreatePod(t, ns, testbed.MakePod("train-0", testbed.InGroup("train"), testbed.WithCores(9)))
	cluster.WaitGroupTold(t, ns, "train", "there is room for 0 of the 1")
	wants(t, 0, []string{"NotEnoughResources: the scheduler has said: there is room for 0 of the 1", "not known: you may not list nodes"}, "why", "train", "-n", ns, "--as=ann")
	wants(t, 8, []string{"is not known, as nodes may not be read"}, "simulate", "train", "-n", ns, "--as=ann")
	wants(t, 0, []string{"train", "not known: you may not list PodGroups of all namespaces"}, "queue", "-n", ns, "--as=ann")
	wants(t, 4, []string{"hint: "}, "why", "train", "-n", ns, "--as=stranger")
}
