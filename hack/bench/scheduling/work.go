// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// gang is n Pods that belong together, for Lockstep.
func gang(n int) objects.Work {
	return objects.Work{Scheduler: lockstep.schedulerName, Gangs: 1, Size: n, CPU: "1"}
}

// pods are n Pods that don't, for a scheduler.
func pods(n int, of scheduler) objects.Work {
	return objects.Work{Scheduler: of.schedulerName, Size: n, CPU: "1"}
}

// createGroups and createPods create all that w is.
func (s *stage) createGroups(ctx context.Context, w objects.Work) error {
	return harness.Parallel(ctx, w.Gangs, func(ctx context.Context, i int) (err error) {
		if w.API != "" {
			_, err = s.groups.Resource(w.API.Resource()).Namespace(objects.Namespace).Create(ctx, w.ForeignGroup(i), metav1.CreateOptions{})
		} else {
			_, err = s.cluster.Lockstep.SchedulingV1alpha1().PodGroups(objects.Namespace).Create(ctx, w.Group(i, w.Size), metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("creating PodGroup %d: %w", i, err)
		}
		return nil
	})
}

func (s *stage) createPods(ctx context.Context, w objects.Work) error {
	return harness.Parallel(ctx, w.Total(), func(ctx context.Context, i int) error {
		if _, err := s.kube.CoreV1().Pods(objects.Namespace).Create(ctx, w.Pod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Pod %d: %w", i, err)
		}
		return nil
	})
}

// clear deletes all Pods and PodGroups, at once.
func (s *stage) clear(ctx context.Context) error {
	list, err := s.kube.CoreV1().Pods(objects.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Pods: %w", err)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	err = harness.Parallel(ctx, len(list.Items), func(ctx context.Context, i int) error {
		err := s.kube.CoreV1().Pods(objects.Namespace).Delete(ctx, list.Items[i].Name, now)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Pod %s: %w", list.Items[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.cluster.Lockstep.SchedulingV1alpha1().PodGroups(objects.Namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting PodGroups: %w", err)
	}
	for _, api := range objects.Foreign {
		err := s.groups.Resource(api.Resource()).Namespace(objects.Namespace).DeleteCollection(ctx, now, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // not found if this case has not installed the kind
			return fmt.Errorf("deleting PodGroups of %s: %w", api, err)
		}
	}
	return nil
}
