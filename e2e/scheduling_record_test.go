//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// record is what became of the Pods of a namespace, in order, judged as it
// happened. mu guards all of it.
type record struct {
	mu   sync.Mutex
	pods map[string]*corev1.Pod // by name
	// minimum of each group, whether it had it since it last had no member placed,
	// and the most members it had since the last calm.
	minimum map[string]int
	whole   map[string]bool
	most    map[string]int
	// waited are the priorities of Pods that were bound, or deleted while they waited, since the last calm.
	waited     map[int32]bool
	orphans    []string
	violations []string

	binds, evictions int
}

// recordPods records until the test ends.
func recordPods(t *testing.T, namespace string) *record {
	t.Helper()
	r := &record{pods: map[string]*corev1.Pod{}, minimum: map[string]int{}, whole: map[string]bool{}, most: map[string]int{}, waited: map[int32]bool{}}
	pods := cluster.Kube.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher := testbed.Watch(t, list, pods.Watch)
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				r.see(event.Type, pod)
			}
		}
	})
	t.Cleanup(done.Wait)
	return r
}

// expect announces a group before it is created.
func (r *record) expect(group string, minimum int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.minimum[group] = minimum
}

// see records one event.
func (r *record) see(kind watch.EventType, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pods[pod.Name]
	group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
	if kind == watch.Deleted {
		delete(r.pods, pod.Name)
		if pod.Spec.NodeName == "" {
			r.waited[*pod.Spec.Priority] = true
		}
	} else {
		r.pods[pod.Name] = pod
		if pod.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
			r.judgeBinding(pod)
		}
		if isEvicted(pod) && (before == nil || !isEvicted(before)) {
			r.judgeEviction(pod)
		}
	}
	members, placed := 0, 0
	for _, other := range r.pods {
		if group != "" && other.Labels[schedulingv1alpha1.LabelPodGroup] == group {
			members++
			if other.Spec.NodeName != "" {
				placed++
			}
		}
	}
	r.most[group] = max(r.most[group], members)
	r.whole[group] = placed > 0 && (r.whole[group] || placed >= r.minimum[group])
}

// judgeBinding: the node holds the Pod, and its group was complete.
func (r *record) judgeBinding(pod *corev1.Pod) {
	r.binds++
	r.waited[*pod.Spec.Priority] = true
	used := 0
	for _, other := range r.pods {
		if other.Spec.NodeName == pod.Spec.NodeName {
			used += cores(other)
		}
	}
	if used > stormCores {
		r.violations = append(r.violations, fmt.Sprintf("%s was bound to %s, of which %d of %d cores are in use then", pod.Name, pod.Spec.NodeName, used, stormCores))
	}
	group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
	members := 0
	for _, other := range r.pods {
		if other.Labels[schedulingv1alpha1.LabelPodGroup] == group {
			members++
		}
	}
	if group != "" && max(r.most[group], members) < r.minimum[group] {
		r.violations = append(r.violations, fmt.Sprintf("%s was bound, but its gang had at most %d members of %d", pod.Name, r.most[group], r.minimum[group]))
	}
}

// judgeEviction: a Pod of higher priority waits, or has waited just before.
func (r *record) judgeEviction(pod *corev1.Pod) {
	r.evictions++
	above := func(priority int32) bool { return priority > *pod.Spec.Priority }
	for _, other := range r.pods {
		if other.Spec.NodeName == "" && above(*other.Spec.Priority) {
			return
		}
	}
	for priority := range r.waited {
		if above(priority) {
			return
		}
	}
	r.violations = append(r.violations, pod.Name+" was evicted, and nothing above it waits or has waited")
}

func isEvicted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

func cores(pod *corev1.Pod) int {
	return int(pod.Spec.Containers[0].Resources.Requests.Cpu().Value())
}
