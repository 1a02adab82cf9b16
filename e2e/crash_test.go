//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/framework"
)

// TestControllerCrashes kills the controller again and again while Frameworks
// are created, retried and completed. Each must come to the end that its spec
// implies, as if nothing had happened, and no task may have two Pods at once:
// their names see to that, so what is checked is that none is left over.
func TestControllerCrashes(t *testing.T) {
	const frameworks = 20
	namespace := cluster.Namespace(t)

	killed := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(killed)
		_ = wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
			// Between two starts there is nothing to kill.
			_ = cluster.Kill(ctx, "controller")
			return false, nil
		})
	}()
	defer func() { stop(); <-killed }()

	want := map[string]end{}
	for i := range frameworks {
		name := fmt.Sprintf("crash%d", i)
		switch i % 4 {
		case 0:
			create(t, namespace, framework.MakeFramework(name).Role("worker", 3, framework.RunFor(time.Second, 0)).Obj())
			want[name] = end{TasksSucceeded: 3, TasksTotal: 3}
		case 1:
			create(t, namespace, framework.MakeFramework(name).Retry(true, 0).
				Role("worker", 3, framework.RunFor(time.Second, 200).InFirstAttempts(2)).Obj())
			want[name] = end{Attempt: 2, Total: 2, TasksSucceeded: 3, TasksTotal: 3}
		case 2:
			create(t, namespace, framework.MakeFramework(name).Retry(false, 1).
				Role("worker", 2, framework.RunFor(time.Second, 9)).Obj())
			want[name] = end{Code: 9, Attempt: 1, Total: 1, Accounted: 1, TasksTotal: 2}
		case 3:
			create(t, namespace, framework.MakeFramework(name).Gang().
				Role("worker", 4, framework.RunFor(time.Second, 0)).Obj())
			want[name] = end{TasksSucceeded: 4, TasksTotal: 4}
		}
	}
	// Attempts that overlap several crashes take longer, so killing stops once
	// half of the Frameworks have made their way through it.
	framework.Eventually(t, "half of the Frameworks to complete under fire", func(ctx context.Context) (bool, string, error) {
		list, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		completed := 0
		for _, fw := range list.Items {
			if fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted {
				completed++
			}
		}
		return completed >= frameworks/2, fmt.Sprintf("%d of %d", completed, frameworks), nil
	})
	stop()

	for name, want := range want {
		got := endOf(cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted))
		if got != want {
			t.Errorf("%s ended as %+v, want %+v", name, got, want)
		}
		pods, err := cluster.PodsOf(t.Context(), namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(pods) != 0 {
			t.Errorf("%s has left %d Pods", name, len(pods))
		}
	}
}

func TestSchedulerCrashLeavesNoGangInPart(t *testing.T) {
	const gangs, members = 8, 25
	namespace := cluster.Namespace(t)
	var group sync.WaitGroup
	for i := range gangs {
		group.Go(func() {
			create(t, namespace, framework.MakeFramework(fmt.Sprintf("gang%d", i)).Gang().
				Role("worker", members, framework.RunForever()).Obj())
		})
	}
	for range 3 {
		if err := cluster.Kill(t.Context(), "scheduler"); err != nil {
			t.Log(err) // it was just being started
		}
	}
	group.Wait()
	for i := range gangs {
		name := fmt.Sprintf("gang%d", i)
		cluster.WaitFramework(t, namespace, name, "run whole", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == members
		})
	}
}
