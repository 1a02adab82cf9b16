// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// patience is how long a test waits for what should take seconds: enough for a
// busy machine with two cores. It bounds failing tests only.
const patience = 3 * time.Minute

// poll is how often a condition is looked at.
const poll = 100 * time.Millisecond

// Await waits until condition returns true, for goroutines other than the test's,
// which may not end it. Errors are tried again; the last one is told in the end.
func Await(ctx context.Context, condition func(ctx context.Context) (done bool, err error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		var done bool
		done, last = condition(ctx)
		return done && last == nil, nil
	})
	if err == nil {
		return nil
	}
	return errors.Join(err, last)
}

// Eventually waits until condition returns true. what completes the sentence
// "timed out waiting for …"; condition returns what it saw, for the message.
func Eventually(t testing.TB, what string, condition func(ctx context.Context) (done bool, seen string, err error)) {
	t.Helper()
	EventuallyWithin(t, patience, what, condition)
}

// EventuallyWithin is Eventually for what takes longer by its nature.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, condition func(ctx context.Context) (done bool, seen string, err error)) {
	t.Helper()
	var seen string
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) {
		var done bool
		done, seen, last = condition(ctx)
		return done && last == nil, nil
	})
	if err != nil {
		t.Fatalf("timed out after %v waiting for %s; last seen: %s (error: %v)", patience, what, seen, last)
	}
}

// Consistently fails as soon as condition is false within d.
func Consistently(t testing.TB, what string, d time.Duration, condition func(ctx context.Context) (ok bool, seen string, err error)) {
	t.Helper()
	_ = wait.PollUntilContextTimeout(t.Context(), poll, d, true, func(ctx context.Context) (bool, error) {
		ok, seen, err := condition(ctx)
		if err != nil {
			return false, nil // an API error tells nothing about the condition
		}
		if !ok {
			t.Fatalf("%s did not hold: %s", what, seen)
		}
		return false, nil
	})
}

// WaitFramework waits until a Framework fulfils condition and returns it.
func (c *Cluster) WaitFramework(t testing.TB, namespace, name, what string, condition func(*frameworkv1.Framework) bool) *frameworkv1.Framework {
	t.Helper()
	return c.WaitFrameworkWithin(t, patience, namespace, name, what, condition)
}

// WaitFrameworkWithin is WaitFramework for what takes longer by its nature.
func (c *Cluster) WaitFrameworkWithin(t testing.TB, patience time.Duration, namespace, name, what string, condition func(*frameworkv1.Framework) bool) *frameworkv1.Framework {
	t.Helper()
	var fw *frameworkv1.Framework
	EventuallyWithin(t, patience, fmt.Sprintf("Framework %s to %s", name, what), func(ctx context.Context) (bool, string, error) {
		var err error
		fw, err = c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return condition(fw), DescribeFramework(fw), nil
	})
	return fw
}

// WaitFrameworkState waits until a Framework is in a state.
func (c *Cluster) WaitFrameworkState(t testing.TB, namespace, name string, state frameworkv1.FrameworkState) *frameworkv1.Framework {
	t.Helper()
	return c.WaitFramework(t, namespace, name, "be "+string(state), func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.State == state
	})
}

// WaitFrameworkGone waits until a Framework and all that it made is deleted.
func (c *Cluster) WaitFrameworkGone(t testing.TB, namespace, name string) {
	t.Helper()
	Eventually(t, "Framework "+name+" and its Pods to be gone", func(ctx context.Context) (bool, string, error) {
		_, err := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, "the Framework exists", err
		}
		pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: frameworkv1.KeyFrameworkName + "=" + name})
		if err != nil {
			return false, "", err
		}
		return len(pods.Items) == 0, fmt.Sprintf("%d Pods", len(pods.Items)), nil
	})
}

// WaitPodGroup waits until a PodGroup fulfils condition and returns it.
func (c *Cluster) WaitPodGroup(t testing.TB, namespace, name, what string, condition func(*schedulingv1alpha1.PodGroup) bool) *schedulingv1alpha1.PodGroup {
	t.Helper()
	var group *schedulingv1alpha1.PodGroup
	Eventually(t, fmt.Sprintf("PodGroup %s to %s", name, what), func(ctx context.Context) (bool, string, error) {
		var err error
		group, err = c.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return condition(group), fmt.Sprintf("%+v", group.Status), nil
	})
	return group
}

// PodsOf lists the Pods of a Framework.
func (c *Cluster) PodsOf(ctx context.Context, namespace, framework string) ([]corev1.Pod, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: frameworkv1.KeyFrameworkName + "=" + framework})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// DeletePod deletes a Pod as a user would, and does not wait until it is gone.
func (c *Cluster) DeletePod(t testing.TB, namespace, name string) {
	t.Helper()
	if err := c.Kube.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Release lets the Pods of a namespace go that Held holds and that are deleted.
func (c *Cluster) Release(t testing.TB, namespace string) {
	t.Helper()
	if err := c.release(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) release(ctx context.Context, namespace string) error {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil || !slices.Contains(pod.Finalizers, jobs.HoldFinalizer) {
			continue
		}
		_, err := c.Kube.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType,
			[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// DescribeFramework says in a line where a Framework is.
func DescribeFramework(fw *frameworkv1.Framework) string {
	s := fw.Status
	if s == nil {
		return fw.Name + ": no status yet"
	}
	line := fmt.Sprintf("%s: %s, attempt %d, retries %d (%d accountable)", fw.Name, s.State, s.AttemptStatus.ID,
		s.RetryPolicyStatus.TotalRetriedCount, s.RetryPolicyStatus.AccountableRetriedCount)
	if s.Tasks != nil {
		line += fmt.Sprintf(", tasks %+v", *s.Tasks)
	}
	if done := s.AttemptStatus.CompletionStatus; done != nil {
		line += fmt.Sprintf(", completion %d %s: %s", done.Code, done.Phrase, done.Diagnostics)
	}
	if group := s.AttemptStatus.PodGroup; group != nil {
		line += fmt.Sprintf(", PodGroup %s %d/%d", group.Phase, group.Scheduled, group.MinMember)
		if group.Unschedulable != nil {
			line += " (" + group.Unschedulable.Reason + ": " + group.Unschedulable.Message + ")"
		}
	}
	return line
}
