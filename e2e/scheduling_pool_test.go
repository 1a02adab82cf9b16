//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// poolLabel names a test's own nodes, as a label and as a taint, so that the
// tests of scheduling can run side by side.
const poolLabel = "e2e.lockstep.dev/pool"

// pool is a namespace with nodes that only its Pods may use.
type pool struct {
	t         *testing.T
	name      string
	namespace string
	made      int // nodes
}

// newPool makes a pool without nodes. The nodes that a test adds go with it.
func newPool(t *testing.T) *pool {
	t.Helper()
	p := &pool{t: t, name: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	p.name = p.name[:min(len(p.name), 50)]
	// Before that of the namespace, so that the nodes outlive their Pods.
	t.Cleanup(func() {
		err := cluster.Kube.CoreV1().Nodes().DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: poolLabel + "=" + p.name})
		if err != nil {
			t.Errorf("deleting nodes: %v", err)
		}
	})
	p.namespace = cluster.Namespace(t)
	return p
}

// addNodes adds n nodes with a number of cores and waits until they are ready. It
// returns their names.
func (p *pool) addNodes(n, cores int, change ...func(*corev1.Node)) []string {
	p.t.Helper()
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("%s-%d", p.name, p.made)
		p.made++
		resources := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(cores), resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        names[i],
				Labels:      map[string]string{corev1.LabelHostname: names[i], corev1.LabelOSStable: "linux", "type": "kwok", poolLabel: p.name},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: poolLabel, Value: p.name, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
		}
		for _, c := range change {
			c(node)
		}
		if _, err := cluster.Kube.CoreV1().Nodes().Create(p.t.Context(), node, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
	testbed.Eventually(p.t, fmt.Sprintf("%d nodes to be ready", n), func(ctx context.Context) (bool, string, error) {
		for _, name := range names {
			node, err := cluster.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(node.Spec.Taints) != 1 {
				return false, name, err
			}
		}
		return true, "", nil
	})
	return names
}

// here has a Pod run in the pool.
func (p *pool) here(pod *corev1.Pod) {
	pod.Spec.NodeSelector = map[string]string{poolLabel: p.name}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: poolLabel, Operator: corev1.TolerationOpEqual, Value: p.name, Effect: corev1.TaintEffectNoSchedule}}
	zero := int64(0)
	pod.Spec.TerminationGracePeriodSeconds = &zero
}

// members are n Pods of a group, to run in the pool.
func (p *pool) members(group string, n int, change ...func(*corev1.Pod)) []*corev1.Pod {
	return members(group, n, append([]func(*corev1.Pod){p.here}, change...)...)
}

// ordinary is a Pod of no group, to run in the pool.
func (p *pool) ordinary(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := p.members(name, 1, change...)[0]
	pod.Labels = nil
	return pod
}

// gang creates a group and n members that it needs all.
func (p *pool) gang(name string, n int, change ...func(*corev1.Pod)) {
	p.t.Helper()
	cluster.CreateGroup(p.t, p.namespace, name, int32(n))
	createPods(p.t, p.namespace, p.members(name, n, change...))
}

// waitMembers waits until exactly n members of a group have a node, and returns
// them.
func (p *pool) waitMembers(group string, n int) []*corev1.Pod {
	p.t.Helper()
	var found []*corev1.Pod
	testbed.Eventually(p.t, fmt.Sprintf("%d members of %s to be placed", n, group), func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, p.namespace)
		found = placed[group]
		return len(found) == n, placed.String(), err
	})
	return found
}

// none fails if a member of a group has a node.
func (p *pool) none(group string) {
	p.t.Helper()
	placed, _, err := gangsIn(p.t.Context(), p.namespace)
	if err != nil || len(placed[group]) > 0 {
		p.t.Errorf("%d members of %s are placed, want none (%v)", len(placed[group]), group, err)
	}
}

// delete deletes all members of a group and waits until they are gone.
func (p *pool) delete(group string) {
	p.t.Helper()
	_, all, err := gangsIn(p.t.Context(), p.namespace)
	if err != nil {
		p.t.Fatal(err)
	}
	deletePods(p.t, p.namespace, all[group])
	for _, pod := range all[group] {
		testbed.Eventually(p.t, pod.Name+" to be gone", func(ctx context.Context) (bool, string, error) {
			now, err := cluster.Kube.CoreV1().Pods(p.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
				return true, "", nil
			}
			return false, "it is there", err
		})
	}
}
