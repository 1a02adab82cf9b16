// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// work is what a scheduler is given: so many Pods, in gangs of one size or on
// their own.
type work struct {
	scheduler string
	// gangs is how many gangs there are, 0 for Pods without a PodGroup. size is
	// the size of each of them, or how many Pods there are.
	gangs, size int
	// cpu is the request of each Pod.
	cpu string
	// rack has each gang stay in one rack.
	rack bool
	// priorityClass of all Pods, empty for none.
	priorityClass string
}

// gang is n Pods that belong together, for Lockstep.
func gang(n int) work { return work{scheduler: lockstep.schedulerName, gangs: 1, size: n, cpu: "1"} }

// pods are n Pods that don't, for a scheduler.
func pods(n int, of scheduler) work { return work{scheduler: of.schedulerName, size: n, cpu: "1"} }

// total is how many Pods it is.
func (w work) total() int { return max(1, w.gangs) * w.size }

func groupName(i int) string { return fmt.Sprintf("gang-%d", i) }

func (w work) group(i int) *schedulingv1alpha1.PodGroup {
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: groupName(i), Namespace: namespace},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: int32(w.size)},
	}
	if w.rack {
		group.Spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: rackLabel, Mode: schedulingv1alpha1.TopologyRequired}}
	}
	return group
}

func (w work) pod(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: namespace},
		Spec: corev1.PodSpec{
			SchedulerName:                w.scheduler,
			PriorityClassName:            w.priorityClass,
			AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/any",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(w.cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}},
			}},
		},
	}
	if w.gangs > 0 {
		pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: groupName(i / w.size)}
	}
	return pod
}

// createGroups and createPods create all that w is.
func (s *stage) createGroups(ctx context.Context, w work) error {
	return harness.Parallel(ctx, w.gangs, func(ctx context.Context, i int) error {
		_, err := s.cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Create(ctx, w.group(i), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating PodGroup %d: %w", i, err)
		}
		return nil
	})
}

func (s *stage) createPods(ctx context.Context, w work) error {
	return harness.Parallel(ctx, w.total(), func(ctx context.Context, i int) error {
		if _, err := s.kube.CoreV1().Pods(namespace).Create(ctx, w.pod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Pod %d: %w", i, err)
		}
		return nil
	})
}

// clear deletes all Pods and PodGroups, at once.
func (s *stage) clear(ctx context.Context) error {
	list, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Pods: %w", err)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	err = harness.Parallel(ctx, len(list.Items), func(ctx context.Context, i int) error {
		err := s.kube.CoreV1().Pods(namespace).Delete(ctx, list.Items[i].Name, now)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Pod %s: %w", list.Items[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting PodGroups: %w", err)
	}
	return nil
}
