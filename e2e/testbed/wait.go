// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Patience is how long a test waits for what should take seconds: enough for a
// busy machine with two cores. It bounds failing tests only.
const Patience = 5 * time.Minute

// patient is the context of a test, for as long as it waits for something.
func patient(t testing.TB, patience time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("timed out after %v", patience))
}

// Eventually waits until condition returns true. what completes the sentence
// "waiting for …"; condition returns what it saw, for the message.
func Eventually(t testing.TB, what string, condition localenv.Condition) {
	t.Helper()
	EventuallyWithin(t, Patience, what, condition)
}

// EventuallyWithin is Eventually for what takes longer by its nature.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, condition localenv.Condition) {
	t.Helper()
	ctx, cancel := patient(t, patience)
	defer cancel()
	if err := localenv.Await(ctx, what, condition); err != nil {
		t.Fatal(err)
	}
}

// Consistently fails as soon as condition is false within d.
func Consistently(t testing.TB, what string, d time.Duration, condition func(ctx context.Context) (ok bool, seen string, err error)) {
	t.Helper()
	_ = wait.PollUntilContextTimeout(t.Context(), localenv.Poll, d, true, func(ctx context.Context) (bool, error) {
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

// PauseFor waits for a time: the moment is what is tested.
func PauseFor(t testing.TB, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// WaitFramework waits until a Framework fulfils condition and returns it.
func (c *Cluster) WaitFramework(t testing.TB, namespace, name, what string, condition func(*frameworkv1.Framework) bool) *frameworkv1.Framework {
	t.Helper()
	return c.WaitFrameworkWithin(t, Patience, namespace, name, what, condition)
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
		return condition(fw), localenv.DescribeFramework(fw), nil
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
		pods, err := c.PodsOf(ctx, namespace, name)
		return len(pods) == 0, fmt.Sprintf("%d Pods", len(pods)), err
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
	if err := c.ReleasePods(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}
